"""The operators of the DSL, each a node whose receiver follows the rules of the Kafka class that it names.

stateless.py           map, filter, branch, peek, ...
processors.py          the Processor API
aggregates.py          count, reduce and aggregate of streams, without windows
tables.py              tables: sources, filter, map_values, to_stream, group_by; transform_values.py
time_windows.py        aggregates by tumbling and hopping windows
sliding_windows.py     aggregates by sliding windows
session_windows.py     aggregates by session windows
windowed_tables.py     base classes of their results; windowed_keys.py: serdes of their keys
closing_windows.py     emits only final results, on window close
late_records.py        writes late records to their topic
suppress.py            suppression; suppression_buffer.py, buffered_changes.py: its buffer
stream_joins.py        joins of two streams; waiting_records.py: records without a partner
stream_table_joins.py  joins of a stream with a table or a global table
table_joins.py         joins of two tables by key
foreign_keys.py        joins of two tables by a foreign key; subscriptions.py: their messages
changes.py             serde of table changes, for topics
"""
