"""Records with schemas of a registry, as kafka-console-producer and kafka-console-consumer write and print them.

- `formats`: the three formats, by Confluent's names of their line readers and formatters
- `schemas`: with which schema keys and values are written
- `serializing`: JSON to keys and values; `printing`: keys and values to JSON
"""
