"""kafka-streams-application-reset: makes a Streams application process its input again (Kafka's StreamsResetter).

`command.py` parses the options and runs the steps: it checks that no member is active, resets the offsets of the input
topics (resetting.py), and deletes the internal topics. positions.py determines the offsets, and internal_topics.py
recognizes internal topics by their names.
"""
