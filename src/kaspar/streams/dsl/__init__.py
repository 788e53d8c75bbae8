"""The language of streams and tables: what a program calls to build its topology.

builder.py             StreamsBuilder: sources, stores, the finished topology
streams_and_tables.py  KStream and KTable
branches.py            the branches of a split stream
grouped.py             grouped streams and cogroups
windowed.py            the same by windows
grouped_tables.py      grouped tables
suppressed.py          suppression of a table's changes
stream_joins.py        joins of a stream with a stream, a table or a global table
table_joins.py         joins of two tables, by key or by foreign key
materialized.py        the stores of tables, from keyword arguments
groupings.py           where the steps of a grouped stream are attached
handles.py             a stream or a table as a node of the graph with its serdes
"""
