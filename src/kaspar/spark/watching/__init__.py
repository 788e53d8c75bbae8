"""Watching streaming queries: figures from Spark's progress events, on a terminal and as Prometheus metrics."""
