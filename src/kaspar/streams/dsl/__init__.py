"""The DSL of streams and tables: the API with which a program builds its topology.

builder.py             StreamsBuilder: sources, stores, the finished topology
streams_and_tables.py  KStream and KTable
branches.py            the branches of a split stream
grouped.py             grouped streams and cogroups
windowed.py            windowed aggregates of grouped streams and cogroups
grouped_tables.py      grouped tables
suppressed.py          KTable.suppress
stream_joins.py        joins of a stream with a stream, a table or a global table
table_joins.py         joins of two tables, by key or by foreign key
materialized.py        the stores of tables, from keyword arguments
groupings.py           how the steps of a grouped stream are added to the graph
handles.py             base classes of streams and tables: a node of the graph with its serdes
"""
