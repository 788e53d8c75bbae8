"""Spark's Python workers collect garbage after every task, however small it was.

They look at all objects then, and nearly all of these are what Spark, Arrow and this package have loaded: 45 ms, which
is more than many a task takes. None of that ever goes, so it is set aside once, when a first task is done.
"""

import functools
import gc


@functools.cache
def set_aside_what_is_loaded() -> None:
    """For processes of Spark's alone, at the end of what they are asked to do."""
    gc.collect()
    gc.freeze()
