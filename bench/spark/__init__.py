"""Our data source beside Spark's own Kafka connector, on one broker: `python -m bench.spark --help`.

docs/benchmarks.md says how it measures and holds the results.
"""
