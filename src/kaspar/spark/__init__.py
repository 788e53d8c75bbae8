"""Spark reads and writes topics: the data source "kaspar" of PySpark, batch and streaming, at least or exactly once.

    import kaspar.spark

    spark = kaspar.spark.session()
    rows = spark.readStream.format("kaspar").option("subscribe", "clicks").load()

Python workers of Spark import this package for every task: it loads nothing of PySpark until a name is used.
"""

from typing import TYPE_CHECKING, Any

from kaspar.spark.session import register, session

if TYPE_CHECKING:
    from kaspar.spark.progress import watch

__all__ = ["register", "session", "watch"]


def __getattr__(name: str) -> Any:
    if name == "watch":
        from kaspar.spark.progress import watch

        return watch
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
