"""Spark reads and writes topics: the data source "kaspar" of PySpark, batch and streaming, at least or exactly once.

    import kaspar.spark

    spark = kaspar.spark.session()
    rows = spark.readStream.format("kaspar").option("subscribe", "clicks").load()

Python workers of Spark import this package for every task: it loads nothing of PySpark until a name is used.
"""

from kaspar.spark.session import register, session

__all__ = ["register", "session"]
