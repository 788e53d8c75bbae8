"""kafka-transactions: lists and describes transactions, and ends those that hang (KIP-664).

`command.py` takes the options and runs most of the subcommands; hanging.py finds transactions that are open on a
partition although their coordinator no longer knows of them.
"""
