"""The operators of the DSL, each a node whose receiver follows the rules of the Kafka class that it names.

stateless.py         map, filter, branch, peek, ...
aggregates.py        count, reduce and aggregate of streams, without windows
tables.py            tables: sources, filter, map_values, to_stream, group_by
time_windows.py      aggregates by tumbling and hopping windows
sliding_windows.py   aggregates by sliding windows
session_windows.py   aggregates by sessions
windowed_tables.py   what their results have in common; windowed_keys.py: how the keys are written
closing_windows.py   final results only, on window close
late_records.py      what happens to records that are too late
suppress.py          suppression; buffered_changes.py: what waits in its buffer
"""
