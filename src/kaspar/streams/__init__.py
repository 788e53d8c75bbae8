"""Kafka Streams' way of thinking, in Python, on Spark."""
