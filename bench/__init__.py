"""The same load against Kaspar and Apache Kafka, side by side: `python -m bench --help`.

docs/benchmarks.md says how it measures and holds the results.
"""
