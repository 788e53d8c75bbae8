"""Makes Spark find the data source "kaspar": it looks for DefaultSource in packages named pyspark_*.

Spark imports all such packages in one process, and one that fails to import hides the others. So this one has nothing
but a name.
"""

from kaspar.spark.source import KasparDataSource as DefaultSource

__all__ = ["DefaultSource"]
