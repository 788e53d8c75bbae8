"""The console commands for records with schemas of a registry: kafka-avro-console-producer and similar commands.

Like Confluent's, they are kafka-console-producer and kafka-console-consumer with another line reader or formatter.
`commands` has the common part of the six commands; each has a module of its own.
"""
