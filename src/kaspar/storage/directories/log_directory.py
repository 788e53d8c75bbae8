"""One log directory: its path, its file layer, and whether it is online.

A directory that fails goes offline until the broker restarts: `fail` returns the StorageFailure with the reason, and
every later write to the directory raises it again. A full disk is not a failure.
"""

import errno
import os
import time
from collections.abc import Callable

from kaspar.base.errors import ErrorCode, Refused, StorageFailure
from kaspar.storage.disk.files import DISK_FULL, TOO_MANY_OPEN_FILES, Files
from kaspar.storage.disk.source import NotCached, Source
from kaspar.storage.segments.open_files import ReadHandles, WriteHandles, too_many_open_files

_CANNOT_TELL = frozenset({errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})


class LogDirectory:
    __slots__ = (
        "_in_memory",
        "_monotonic",
        "_tells_cached",
        "cached",
        "files",
        "offline",
        "path",
        "readers",
        "waiting",
        "writers",
    )

    def __init__(
        self,
        path: str,
        files: Files,
        readers: ReadHandles,
        writers: WriteHandles,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path = path
        self.files = files
        self.readers = readers
        self.writers = writers
        self.offline: str | None = None
        self._monotonic = monotonic
        self._in_memory: bool | None = None
        self._tells_cached = True
        self.waiting = Source(files.pread, waits=True)
        self.cached = Source(self.pread_now, waits=False)

    def steady_ms(self) -> int:
        """The steady clock, which measures how long something in the directory's logs has waited."""
        return int(self._monotonic() * 1000)

    @property
    def online(self) -> bool:
        return self.offline is None

    def fail(self, error: OSError, doing: str) -> StorageFailure | Refused:
        """Return the exception to raise for a file system error: Refused if the disk has not failed."""
        if error.errno in DISK_FULL:
            return Refused(ErrorCode.KAFKA_STORAGE_ERROR, f"no space is left in {self.path} while {doing}")
        if error.errno in TOO_MANY_OPEN_FILES:
            return too_many_open_files(self.path)
        return self.take_offline(f"{os.strerror(error.errno or 0)} while {doing}")

    def take_offline(self, reason: str) -> StorageFailure:
        if self.offline is None:
            self.offline = reason
        return StorageFailure(self.path, f"the log directory {self.path} is offline: {self.offline}")

    def check_online(self) -> None:
        if self.offline is not None:
            raise StorageFailure(self.path, f"the log directory {self.path} is offline: {self.offline}")

    def pread_now(self, fd: int, length: int, position: int) -> bytes | bytearray:
        """Read without waiting for the disk. Raises NotCached unless the bytes are in memory."""
        if self._in_memory or self._is_in_memory():
            return self.files.pread(fd, length, position)
        if self._tells_cached:
            try:
                data = self.files.pread_cached(fd, length, position)
            except OSError as error:
                if error.errno not in _CANNOT_TELL:
                    raise
                self._tells_cached = False
            else:
                if data is not None:
                    return data
        raise NotCached

    def cached_length(self, fd: int, position: int, length: int) -> int:
        """How many of these bytes, counted from the first, are in memory."""
        if self._in_memory or self._is_in_memory():
            return length
        return self.files.cached_length(fd, position, length)

    def _is_in_memory(self) -> bool:
        if self._in_memory is None:
            self._in_memory = self.files.is_in_memory(self.path)
        return self._in_memory
