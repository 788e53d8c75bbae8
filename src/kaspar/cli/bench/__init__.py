"""`kaspar bench`: how fast a cluster is, as tables. Its loads are those of Kafka's perf commands."""
