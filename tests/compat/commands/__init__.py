"""Kafka's commands and ours on brokers of both kinds: the same options, output and exit codes."""
