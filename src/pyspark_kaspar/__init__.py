"""Spark looks for packages named pyspark_*, and finds the data source "kaspar" here.

Spark imports every such package in one process, and one that fails hides all others. So this one holds a name, and what
it stands for is loaded with Kaspar's own.
"""

from kaspar.spark.source import KasparDataSource as DefaultSource

__all__ = ["DefaultSource"]
