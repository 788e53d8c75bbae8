"""`make bench-tools`: the commands compared with Kafka's own, on one broker.

A case is in a file of its kind (`start_up.py`) and in the list of `cases.py`.
"""
