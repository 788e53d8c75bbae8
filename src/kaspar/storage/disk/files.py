"""The file layer: the system calls that the log uses.

Everything in this package accesses the disk through a `Files`, so that tests can run the same code on one that forgets
what was not synced. `OsFiles` adds nothing on the hot path: its `pwrite` and `pread` are the system's own. Only `fsync`
and `fsync_dir` make anything durable; a rename or a new file is durable once its folder is synced.
"""

import contextlib
import errno
import os
from typing import Protocol

from kaspar.storage.disk.page_cache import cached_length

Bytes = bytes | bytearray | memoryview

DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
TOO_MANY_OPEN_FILES = frozenset({errno.EMFILE, errno.ENFILE})


class Files(Protocol):
    def open(self, path: str, *, write: bool = False, create: bool = False) -> int:
        """Open a file and return its descriptor; with `create` the file is created or truncated."""
        ...

    def close(self, fd: int) -> None: ...

    def pread(self, fd: int, length: int, position: int, /) -> bytes: ...

    def pread_cached(self, fd: int, length: int, position: int) -> bytes | bytearray | None:
        """Read what the page cache contains from `position` on, without waiting for the disk; None if that is nothing.

        Raises OSError(EOPNOTSUPP) if the file system cannot tell.
        """
        ...

    def cached_length(self, fd: int, position: int, length: int) -> int:
        """How many of the `length` bytes from `position` on are in the page cache; 0 if the system cannot tell."""
        ...

    def pwrite(self, fd: int, data: Bytes, position: int, /) -> int: ...

    def fsync(self, fd: int, /) -> None: ...

    def truncate(self, fd: int, size: int, /) -> None: ...

    def allocate(self, fd: int, size: int) -> None:
        """Allocate blocks for the file, up to `size` bytes."""
        ...

    def will_need(self, fd: int, position: int, length: int) -> None:
        """Tell the system that these bytes will be read soon."""
        ...

    def size(self, path: str) -> int: ...

    def modified_ms(self, path: str) -> int: ...

    def set_modified_ms(self, path: str, modified_ms: int) -> None: ...

    def is_in_memory(self, path: str) -> bool:
        """Whether the folder's file system never waits for a disk (tmpfs)."""
        ...

    def space(self, path: str) -> tuple[int, int]:
        """Bytes of the folder's file system: total, and available."""
        ...

    def listdir(self, path: str) -> list[str]: ...

    def mkdir(self, path: str) -> None:
        """Create a folder and its parents if they do not exist."""
        ...

    def rmdir(self, path: str) -> None: ...

    def rename(self, old: str, new: str) -> None: ...

    def unlink(self, path: str) -> None: ...

    def fsync_dir(self, path: str) -> None: ...


class OsFiles:
    pread = staticmethod(os.pread)
    pwrite = staticmethod(os.pwrite)
    fsync = staticmethod(os.fsync)
    truncate = staticmethod(os.ftruncate)
    close = staticmethod(os.close)
    listdir = staticmethod(os.listdir)
    rmdir = staticmethod(os.rmdir)
    rename = staticmethod(os.rename)
    unlink = staticmethod(os.unlink)
    size = staticmethod(os.path.getsize)

    def open(self, path: str, *, write: bool = False, create: bool = False) -> int:
        flags = os.O_RDWR if write or create else os.O_RDONLY
        if create:
            flags |= os.O_CREAT | os.O_TRUNC
        return os.open(path, flags | os.O_CLOEXEC, 0o644)

    def pread_cached(self, fd: int, length: int, position: int) -> bytes | bytearray | None:
        buffer = bytearray(length)
        try:
            got = os.preadv(fd, [buffer], position, os.RWF_NOWAIT)
        except BlockingIOError:
            return None
        if got < length:
            del buffer[got:]
        return buffer

    def cached_length(self, fd: int, position: int, length: int) -> int:
        return cached_length(fd, position, length)

    def mkdir(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def allocate(self, fd: int, size: int) -> None:
        os.posix_fallocate(fd, 0, size)

    def will_need(self, fd: int, position: int, length: int) -> None:
        os.posix_fadvise(fd, position, length, os.POSIX_FADV_WILLNEED)

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        os.utime(path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))

    def is_in_memory(self, path: str) -> bool:
        best, kind = "", ""
        real = os.path.realpath(path)
        with contextlib.suppress(OSError), open("/proc/self/mounts") as mounts:
            for line in mounts:
                _, mount_point, mount_kind = line.split(" ")[:3]
                inside = real == mount_point or real.startswith(mount_point.rstrip("/") + "/")
                if inside and len(mount_point) >= len(best):
                    best, kind = mount_point, mount_kind
        return kind in ("tmpfs", "ramfs")

    def space(self, path: str) -> tuple[int, int]:
        found = os.statvfs(path)
        return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize

    def fsync_dir(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def read_file(files: Files, path: str) -> bytes:
    """Read a small file completely."""
    fd = files.open(path)
    try:
        parts = []
        position = 0
        while part := files.pread(fd, 1 << 20, position):
            parts.append(part)
            position += len(part)
        return b"".join(parts)
    finally:
        files.close(fd)


def write_all(files: Files, fd: int, data: Bytes, position: int) -> None:
    """Write every byte: a single `pwrite` may write only some of them."""
    written = files.pwrite(fd, data, position)
    if written != len(data):
        view = memoryview(data)
        while written < len(data):
            written += files.pwrite(fd, view[written:], position + written)


def write_file(files: Files, path: str, data: bytes, *, sync: bool = True) -> None:
    """Write a small file atomically: as a temporary file, synced, renamed, folder synced."""
    temporary = path + ".tmp"
    try:
        fd = files.open(temporary, create=True)
        try:
            write_all(files, fd, data, 0)
            if sync:
                files.fsync(fd)
        finally:
            files.close(fd)
        files.rename(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            files.unlink(temporary)
        raise
    if sync:
        files.fsync_dir(os.path.dirname(path))


def sync_file(files: Files, path: str) -> None:
    fd = files.open(path)
    try:
        files.fsync(fd)
    finally:
        files.close(fd)


def unlink_if_there(files: Files, path: str) -> bool:
    try:
        files.unlink(path)
    except FileNotFoundError:
        return False
    return True


def remove_folder(files: Files, path: str) -> None:
    """Remove a folder and the files in it. Kafka's partition folders contain no folders."""
    for name in files.listdir(path):
        unlink_if_there(files, os.path.join(path, name))
    files.rmdir(path)
