"""kafka-replica-verification: repeatedly reads all replicas of topics and compares them, until it is stopped.

`command.py` parses the options and reports; reading.py reads the replicas, and comparison.py compares them.
"""
