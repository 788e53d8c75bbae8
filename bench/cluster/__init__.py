"""The same load against three brokers of Kaspar and of Apache Kafka, side by side: `python -m bench.cluster --help`.

docs/benchmarks.md says how it measures and holds the results.
"""
