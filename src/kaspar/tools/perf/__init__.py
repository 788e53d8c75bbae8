"""kafka-producer-perf-test, kafka-consumer-perf-test and kafka-e2e-latency: measure the performance of a cluster.

They handle whole batches, in the compiled core, so that they measure the cluster rather than themselves.
"""
