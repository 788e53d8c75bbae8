"""The schema registry: Confluent's API over a compacted topic. It is a client of the brokers like any other."""
