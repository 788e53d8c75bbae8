"""The same load against Kaspar and Apache Kafka, side by side: `python -m bench --help`.

docs/benchmarks.md describes the method and contains the results.
"""
