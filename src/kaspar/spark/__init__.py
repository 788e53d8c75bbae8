"""The PySpark data source "kaspar": reads and writes topics, batch and streaming, at least once or exactly once.

    import kaspar.spark

    spark = kaspar.spark.session()
    rows = spark.readStream.format("kaspar").option("subscribe", "clicks").load()

Spark's Python workers import this package for every task, so it loads no part of PySpark until a name is used.
"""

from typing import TYPE_CHECKING, Any

from kaspar.spark.running.sessions import end, register, session

if TYPE_CHECKING:
    from kaspar.spark.exactly_once.foreach_batch import batch, write_batch
    from kaspar.spark.registry_functions import from_registry, to_registry
    from kaspar.spark.watching.progress import watch

__all__ = ["batch", "end", "from_registry", "register", "session", "to_registry", "watch", "write_batch"]


def __getattr__(name: str) -> Any:
    if name == "watch":
        from kaspar.spark.watching.progress import watch

        return watch
    if name in ("batch", "write_batch"):
        from kaspar.spark.exactly_once import foreach_batch

        return getattr(foreach_batch, name)
    if name in ("from_registry", "to_registry"):
        from kaspar.spark import registry_functions

        return getattr(registry_functions, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
