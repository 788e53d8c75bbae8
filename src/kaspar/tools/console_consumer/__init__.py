"""kafka-console-consumer: prints the records of a topic.

- `command`: its options, and the consumer properties that follow from them
- `consuming`: reads records and prints them, until there are enough or no more arrive
- `formatters`: how a record is printed, by Kafka's class names; `deserializers`: its key, value and headers
"""
