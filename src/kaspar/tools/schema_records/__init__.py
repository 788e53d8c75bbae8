"""Serializes and prints records with schemas of a registry, for kafka-console-producer and kafka-console-consumer.

- `formats`: the three formats, by Confluent's names of their line readers and formatters
- `schemas`: the schemas with which keys and values are written
- `serializing`: JSON to keys and values; `printing`: keys and values to JSON
"""
