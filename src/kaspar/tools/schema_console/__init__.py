"""The console commands for records with schemas of a registry: kafka-avro-console-producer and its kin.

They are kafka-console-producer and kafka-console-consumer with another line reader or formatter, as Confluent's are.
`commands` is what the six have in common; each has a module of its own.
"""
