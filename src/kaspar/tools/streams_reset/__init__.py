"""kafka-streams-application-reset: makes a Streams application process its input again (Kafka's StreamsResetter).

`command.py` takes the options and goes through the steps: no member is active, the offsets of the input topics are
reset (resetting.py), the internal topics are deleted. positions.py decides which offsets, and internal_topics.py
recognizes internal topics by their names.
"""
