"""`kaspar bench`: measures the performance of a cluster, with the loads of Kafka's perf commands."""
