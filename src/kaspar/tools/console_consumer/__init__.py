"""kafka-console-consumer: the records of a topic, printed.

- `command`: its options, and the properties of the consumer that follow from them
- `consuming`: records from the topics to standard output, until there are enough or none come
- `formatters`: how a record is printed, by Kafka's class names; `deserializers`: its key, value and headers
"""
