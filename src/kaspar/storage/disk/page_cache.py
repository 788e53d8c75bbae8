"""Asks the kernel whether a part of a file is in memory, in which case a thread that must not wait can send it.

cachestat(2), in Linux 6.5 and newer, counts the pages that are in the cache, including pages that a read has yet to
fill. Reads fill them in order, so the last byte is read as well, without waiting. The result is only valid at this
moment: a page may be evicted at any time. (mincore(2) is older and exact, but needs a mapping, and so takes half as
long as sending the bytes.)
"""

import ctypes
import mmap
import os

_CACHESTAT = 451
_PAGE = mmap.PAGESIZE
_Range = ctypes.c_uint64 * 2
_Counts = ctypes.c_uint64 * 5

_syscall = ctypes.PyDLL(None, use_errno=True).syscall
_syscall.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint)
_syscall.restype = ctypes.c_long


def cached_length(fd: int, position: int, length: int) -> int:
    """Return `length` if all the bytes from `position` on are in memory; 0 if not, or if the system cannot tell."""
    counts = _Counts()
    if _syscall(_CACHESTAT, fd, _Range(position, length), counts, 0) != 0:
        return 0
    last = position + length - 1
    if counts[0] <= last // _PAGE - position // _PAGE:
        return 0
    try:
        return length if os.preadv(fd, [bytearray(1)], last, os.RWF_NOWAIT) else 0
    except OSError:
        return 0
