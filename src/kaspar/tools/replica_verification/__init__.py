"""kafka-replica-verification: reads all replicas of topics, again and again, and compares them until it is ended.

`command.py` takes the options and reports; reading.py reads the replicas, and comparison.py compares them.
"""
