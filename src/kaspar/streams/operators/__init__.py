"""The operators of the DSL, each a node whose receiver follows the rules of the Kafka class that it names.

stateless.py           map, filter, branch, peek, ...
processors.py          the Processor API
aggregates.py          count, reduce and aggregate of streams, without windows
tables.py              tables: sources, filter, map_values, to_stream, group_by; transform_values.py
time_windows.py        aggregates by tumbling and hopping windows
sliding_windows.py     aggregates by sliding windows
session_windows.py     aggregates by sessions
windowed_tables.py     what their results have in common; windowed_keys.py: how the keys are written
closing_windows.py     final results only, on window close
late_records.py        what happens to records that are too late
suppress.py            suppression; suppression_buffer.py, buffered_changes.py: what waits
stream_joins.py        joins of two streams; waiting_records.py keeps what has no partner yet
stream_table_joins.py  joins of a stream with a table or a global table
table_joins.py         joins of two tables by key
foreign_keys.py        joins of two tables by a foreign key; subscriptions.py is what they send each other
changes.py             changes of tables as bytes, for topics
"""
