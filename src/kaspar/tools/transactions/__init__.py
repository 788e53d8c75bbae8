"""kafka-transactions: lists and describes transactions, and ends those that hang (KIP-664).

`command.py` runs what the options (options.py) ask for; hanging.py finds transactions that are open on a partition
although their coordinator no longer knows of them.
"""
