"""The language of streams and tables: what a program calls to build its topology.

builder.py       StreamsBuilder: sources, stores, the finished topology
kstream.py       KStream and its branches
grouped.py       grouped streams and cogroups
windowed.py      the same by windows
ktable.py        KTable, GlobalKTable, grouped tables
suppressed.py    suppression of a table's changes
stream_joins.py  joins of a stream with a stream, a table or a global table
table_joins.py   joins of two tables, by key or by foreign key
materialized.py  the stores of tables, from keyword arguments
"""
