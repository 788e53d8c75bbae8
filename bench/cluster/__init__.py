"""The same load against three brokers of Kaspar and of Apache Kafka, side by side: `python -m bench.cluster --help`.

docs/benchmarks.md describes the method and contains the results.
"""
