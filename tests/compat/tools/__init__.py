"""Kafka's administrative commands and ours, side by side against a cluster of Apache Kafka."""
