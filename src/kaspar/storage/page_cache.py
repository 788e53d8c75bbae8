"""How much of a file is in memory, asked of the kernel: what is there can be sent by a thread that must not wait.

mincore(2) tells of pages that hold what the disk holds, and not of those that a read has yet to fill; so it is asked
through a mapping that nobody looks into. The answer is of this moment: a page may go at any time.
"""

import ctypes
import mmap

_libc = ctypes.PyDLL(None, use_errno=True)
_map = _libc.mmap
_map.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64)
_map.restype = ctypes.c_void_p
_unmap = _libc.munmap
_unmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_in_core = _libc.mincore
_in_core.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)

_FAILED = ctypes.c_void_p(-1).value
_PAGE = mmap.PAGESIZE


def cached_length(fd: int, position: int, length: int) -> int:
    """How many of the `length` bytes from `position` on are in memory, up to the first that is not; 0 where the system
    does not tell.
    """
    before = position % _PAGE
    span = before + length
    address = _map(None, span, mmap.PROT_READ, mmap.MAP_SHARED, fd, position - before)
    if address == _FAILED:
        return 0
    try:
        pages = (ctypes.c_ubyte * -(-span // _PAGE))()
        if _in_core(address, span, pages) != 0:
            return 0
    finally:
        _unmap(address, span)
    missing = bytes(pages).find(0)
    return length if missing < 0 else max(0, min(length, missing * _PAGE - before))
