"""The console commands for records with schemas of a registry: kafka-avro-console-producer and its kin.

They are kafka-console-producer and kafka-console-consumer with another line reader or formatter, as Confluent's are.

- `formats`: the three formats, by Confluent's names of their line readers and formatters
- `reader`: lines of JSON to records; `schemas`: with which schema; `formatter`: records to JSON
- `commands`: what the six commands have in common; each has a module of its own
"""
