"""kafka-transactions: lists and describes transactions, and ends hanging ones (KIP-664).

`command.py` runs the subcommand selected by the options (options.py). hanging.py finds transactions that are open on a
partition although their coordinator no longer knows of them.
"""
