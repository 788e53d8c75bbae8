"""`kaspar bench`: performance of a cluster, as tables. The loads are those of Kafka's perf commands."""
