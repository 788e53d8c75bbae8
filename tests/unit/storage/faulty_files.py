"""The system's files with faults on demand: the next calls of a kind fail, or only so many bytes can be written."""

import errno
import os
from collections import Counter

from kaspar.storage.disk.files import Bytes, OsFiles


class FaultyFiles:
    def __init__(self) -> None:
        self._system = OsFiles()
        self.failures: dict[str, int] = {}
        self.bytes_left: int | None = None
        self.calls: Counter[str] = Counter()
        self.read_paths: list[str] = []
        self._paths: dict[int, str] = {}

    def fail(self, call: str, number: int) -> None:
        """From now on `call` fails with this error, until `recover`."""
        self.failures[call] = number

    def recover(self) -> None:
        self.failures.clear()
        self.bytes_left = None

    def _maybe_fail(self, call: str) -> None:
        self.calls[call] += 1
        if call in self.failures:
            raise OSError(self.failures[call], os.strerror(self.failures[call]))

    def open(self, path: str, *, write: bool = False, create: bool = False) -> int:
        self._maybe_fail("open")
        fd = self._system.open(path, write=write, create=create)
        self._paths[fd] = path
        return fd

    def close(self, fd: int) -> None:
        self._system.close(fd)

    def pread(self, fd: int, length: int, position: int, /) -> bytes:
        self.read_paths.append(self._paths[fd])
        return os.pread(fd, length, position)

    def pread_cached(self, fd: int, length: int, position: int) -> bytes | bytearray | None:
        self._maybe_fail("pread_cached")
        return self._system.pread_cached(fd, length, position)

    def cached_length(self, fd: int, position: int, length: int) -> int:
        return self._system.cached_length(fd, position, length)

    def pwrite(self, fd: int, data: Bytes, position: int, /) -> int:
        self._maybe_fail("pwrite")
        if self.bytes_left is None:
            return os.pwrite(fd, data, position)
        if self.bytes_left == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = os.pwrite(fd, memoryview(data)[: self.bytes_left], position)
        self.bytes_left -= written
        return written

    def fsync(self, fd: int, /) -> None:
        self._maybe_fail("fsync")

    def truncate(self, fd: int, size: int, /) -> None:
        self._maybe_fail("truncate")
        os.ftruncate(fd, size)

    def allocate(self, fd: int, size: int) -> None:
        self._maybe_fail("allocate")
        self._system.allocate(fd, size)

    def will_need(self, fd: int, position: int, length: int) -> None:
        self._maybe_fail("will_need")

    def size(self, path: str) -> int:
        return self._system.size(path)

    def modified_ms(self, path: str) -> int:
        return self._system.modified_ms(path)

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        self._system.set_modified_ms(path, modified_ms)

    def is_in_memory(self, path: str) -> bool:
        return False

    def space(self, path: str) -> tuple[int, int]:
        return self._system.space(path)

    def listdir(self, path: str) -> list[str]:
        self._maybe_fail("listdir")
        return self._system.listdir(path)

    def mkdir(self, path: str) -> None:
        self._maybe_fail("mkdir")
        self._system.mkdir(path)

    def rmdir(self, path: str) -> None:
        self._system.rmdir(path)

    def rename(self, old: str, new: str) -> None:
        self._maybe_fail("rename")
        self._system.rename(old, new)

    def unlink(self, path: str) -> None:
        self._maybe_fail("unlink")
        self._system.unlink(path)

    def fsync_dir(self, path: str) -> None:
        self._maybe_fail("fsync_dir")
