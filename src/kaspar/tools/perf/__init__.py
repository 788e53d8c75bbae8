"""kafka-producer-perf-test, kafka-consumer-perf-test and kafka-e2e-latency: how fast a cluster is.

They handle whole batches, in the compiled core, so that they measure the cluster rather than themselves.
"""
