"""Two ways to read from a file: one that may wait for the disk, and one that never does."""

from collections.abc import Callable
from typing import NamedTuple


class NotCached(Exception):
    """The bytes may have to come from the disk, and the caller cannot wait for them."""


class Source(NamedTuple):
    pread: Callable[[int, int, int], bytes | bytearray]
    waits: bool
    """Whether `pread` may wait for the disk. Otherwise it raises NotCached."""
