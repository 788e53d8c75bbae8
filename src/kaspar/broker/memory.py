"""Keeps freed memory in the process.

Responses and received requests are blocks of up to some megabytes that live for a millisecond. By default glibc returns
such blocks to the kernel as soon as they are free. Then every page of the next one is faulted in and cleared again,
which takes twice as long as reading the records into it.
"""

import ctypes
import os
from typing import Final

KEPT_BYTES: Final = 16 * 1024 * 1024

# From glibc's malloc.h.
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3


def keep_freed_memory() -> bool:
    """Let the C library keep up to KEPT_BYTES of free memory. False if it is not glibc."""
    if "CS_GNU_LIBC_VERSION" not in os.confstr_names:
        return False
    mallopt = ctypes.CDLL(None).mallopt
    return bool(mallopt(_M_MMAP_THRESHOLD, KEPT_BYTES) and mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES))
