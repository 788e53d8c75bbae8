"""Spark reads and writes topics: the data source "kaspar" of PySpark, batch and streaming, at least or exactly once."""
