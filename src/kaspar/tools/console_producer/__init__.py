"""kafka-console-producer: the lines of standard input become records of a topic.

- `command`: its options, and the properties of the producer that follow from them
- `line_readers`: how lines become records, by Kafka's and Confluent's class names; `lines`: what of a line is key,
  value and headers
- `sending`: records to the topic, and what is reported about those that are not stored
"""
