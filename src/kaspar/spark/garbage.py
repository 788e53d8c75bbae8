"""Spark's Python workers run the garbage collector after every task, however small.

Each run visits all objects, nearly all of which belong to the loaded modules of Spark, Arrow and this package: 45 ms,
more than many tasks take. These objects live as long as the process, so they are frozen once, after the first task.
"""

import functools
import gc


@functools.cache
def freeze_loaded_objects() -> None:
    """Freeze the objects of this process. Only for processes that Spark has started, at the end of their task."""
    gc.collect()
    gc.freeze()
