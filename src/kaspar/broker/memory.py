"""How the process treats free memory, and garbage.

Free memory stays with the process. Responses and received requests are blocks of up to some megabytes, and live for a
millisecond. glibc returns such blocks to the kernel as soon as they are free. Then every page of the next one is
faulted in and cleared again, which takes twice as long as reading the records into it.

The cyclic garbage collector runs rarely. What a request leaves behind is freed with its last reference, without the
collector; hundreds of requests that wait at the same time, as in a rebalance, would trigger it again and again.
"""

import ctypes
import gc
import os
from typing import Final

KEPT_BYTES: Final = 16 * 1024 * 1024
NEW_OBJECTS: Final = 10_000
"""New objects after which the collector runs; Python's default is 700."""

# The numbers of glibc's malloc.h.
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3


def keep_freed_memory() -> bool:
    """Let the C library keep up to KEPT_BYTES of free memory. False if it is not glibc."""
    if "CS_GNU_LIBC_VERSION" not in os.confstr_names:
        return False
    mallopt = ctypes.CDLL(None).mallopt
    return bool(mallopt(_M_MMAP_THRESHOLD, KEPT_BYTES) and mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES))


def collect_garbage_rarely() -> None:
    """What exists by now, the broker itself, is never collected."""
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS)
