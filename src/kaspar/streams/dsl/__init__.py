"""The language of streams and tables: what a program calls to build its topology.

builder.py       StreamsBuilder: sources, stores, the finished topology
kstream.py       KStream and its branches
grouped.py       grouped streams and cogroups
windowed.py      the same by windows
ktable.py        KTable, GlobalKTable, grouped tables
suppressed.py    suppression of a table's changes
materialized.py  the stores of tables, from keyword arguments
"""
