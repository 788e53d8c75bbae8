"""Our data source compared with Spark's own Kafka connector, on one broker: `python -m bench.spark --help`.

docs/benchmarks.md describes the method and contains the results.
"""
