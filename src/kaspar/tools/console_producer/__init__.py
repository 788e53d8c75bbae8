"""kafka-console-producer: sends each line of standard input to a topic as a record.

- `command`: its options, and the producer properties that follow from them
- `line_readers`: how lines become records, by Kafka's and Confluent's class names; `lines`: splits a line into key,
  value and headers
- `sending`: sends the records, and reports those that are not stored
"""
