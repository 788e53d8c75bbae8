"""The operators of the DSL, each a node whose receiver follows the rules of the Kafka class that it names.

stateless.py   map, filter, branch, peek, ...
aggregates.py  count, reduce and aggregate of streams, without windows
tables.py      tables: sources, filter, map_values, to_stream, group_by
"""
