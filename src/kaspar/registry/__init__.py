"""The schema registry: Confluent's API over a compacted topic. A client of the broker, like any other."""
