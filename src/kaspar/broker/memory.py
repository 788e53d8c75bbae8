"""How the process treats memory that is free, or that nobody needs any more.

Free memory stays with the process, so that the next answer need not fetch it anew. Answers and received requests are
blocks of up to some megabytes, and live for a millisecond. glibc gives such blocks back to the kernel as soon as they
are free. Then every page of the next one is faulted in and cleared again, which takes twice as long as to read the
records into it.

Garbage that holds itself is looked for seldom. What a request leaves behind is freed when the last reference to it is
gone, and needs no search; hundreds that wait at the same time, as in a rebalance, would set off one after the other.
"""

import ctypes
import gc
import os
from typing import Final

KEPT_BYTES: Final = 16 * 1024 * 1024
NEW_OBJECTS: Final = 10_000
"""So many more objects than before, and Python looks for garbage among them; 700 is its own default."""

# The numbers of glibc's malloc.h.
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3


def keep_freed_memory() -> bool:
    """Let the C library keep up to KEPT_BYTES of free memory. False where it is none that can be told so."""
    if "CS_GNU_LIBC_VERSION" not in os.confstr_names:
        return False
    mallopt = ctypes.CDLL(None).mallopt
    return bool(mallopt(_M_MMAP_THRESHOLD, KEPT_BYTES) and mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES))


def seldom_look_for_garbage() -> None:
    """What is there by now, the broker itself, is never looked at again."""
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS)
