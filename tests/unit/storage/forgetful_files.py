"""A file layer in memory that forgets what was not synced, as a power cut makes a disk do.

Every file has bytes as the process sees them and bytes as the disk holds them, with the writes in between; every folder
likewise has names. `crash` keeps what was synced and a random part of the rest: some of the writes since the last sync,
the last of them torn, others as zeros (a file may have grown before its data came), and a first part of the changes
to a folder's names.
"""

import errno
import os
import random
from dataclasses import dataclass, field

from kaspar.storage.disk.files import Bytes

Write = tuple[int, bytes]  # position, data
Change = Write | int  # an int is a truncation to that size


def _apply(content: bytearray, change: Change) -> None:
    if isinstance(change, int):
        del content[change:]
        content.extend(bytes(change - len(content)))
    else:
        position, data = change
        if len(content) < position:
            content.extend(bytes(position - len(content)))
        content[position : position + len(data)] = data


@dataclass
class _Inode:
    current: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)
    unsynced: list[Change] = field(default_factory=list)
    modified_ms: int = 0

    def change(self, change: Change) -> None:
        _apply(self.current, change)
        self.unsynced.append(change)

    def sync(self) -> None:
        self.durable = bytearray(self.current)
        self.unsynced.clear()

    def lose_power(self, rng: random.Random) -> None:
        content = bytearray(self.durable)
        kept = self.unsynced[: rng.randint(0, len(self.unsynced))]
        for number, change in enumerate(kept):
            if isinstance(change, int):
                _apply(content, change)
                continue
            position, data = change
            fate = rng.random()
            if number == len(kept) - 1 and fate < 0.5:
                data = data[: rng.randint(0, len(data))]
            elif fate < 0.1:
                data = bytes(len(data))
            _apply(content, (position, data))
        self.current = content
        self.sync()


class ForgetfulFiles:
    def __init__(self) -> None:
        self._folders: set[str] = {"/"}
        self._names: dict[str, _Inode] = {}
        self._durable_names: dict[str, _Inode] = {}
        # Of each folder, in order; a rename is one change of two names.
        self._changes: dict[str, list[tuple[tuple[str, _Inode | None], ...]]] = {}
        self._open: dict[int, _Inode] = {}
        self._next_fd = 1000
        self.cached = True
        self.syncs = 0

    def crash(self, rng: random.Random) -> None:
        """The power is cut. Descriptors that are open are void."""
        for _, changes in sorted(self._changes.items()):
            for change in changes[: rng.randint(0, len(changes))]:
                self._make_durable(change)
        self._changes.clear()
        self._names = dict(self._durable_names)
        # In the order of the names, so that one seed always gives one outcome; a file with two names loses power once.
        inodes = {id(inode): inode for _, inode in sorted(self._names.items(), key=lambda entry: entry[0])}
        for inode in inodes.values():
            inode.lose_power(rng)
        self._open.clear()

    def content(self, path: str) -> bytearray:
        return self._names[path].current

    @staticmethod
    def _set(names: dict[str, _Inode], path: str, inode: _Inode | None) -> None:
        if inode is None:
            names.pop(path, None)
        else:
            names[path] = inode

    def _make_durable(self, change: tuple[tuple[str, _Inode | None], ...]) -> None:
        for path, inode in change:
            self._set(self._durable_names, path, inode)

    def _change(self, *change: tuple[str, _Inode | None]) -> None:
        for path, inode in change:
            self._set(self._names, path, inode)
        self._changes.setdefault(os.path.dirname(change[0][0]), []).append(change)

    def _inode(self, path: str) -> _Inode:
        inode = self._names.get(path)
        if inode is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return inode

    def open(self, path: str, *, write: bool = False, create: bool = False) -> int:
        if create and path not in self._names:
            if os.path.dirname(path) not in self._folders:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            self._change((path, _Inode()))
        inode = self._inode(path)
        if create:
            inode.change(0)
        self._next_fd += 1
        self._open[self._next_fd] = inode
        return self._next_fd

    def close(self, fd: int) -> None:
        del self._open[fd]

    def pread(self, fd: int, length: int, position: int, /) -> bytes:
        return bytes(self._open[fd].current[position : position + length])

    def pread_cached(self, fd: int, length: int, position: int) -> bytes | bytearray | None:
        return self.pread(fd, length, position) if self.cached else None

    def cached_length(self, fd: int, position: int, length: int) -> int:
        return length if self.cached else 0

    def pwrite(self, fd: int, data: Bytes, position: int, /) -> int:
        self._open[fd].change((position, bytes(data)))
        return len(data)

    def fsync(self, fd: int, /) -> None:
        self.syncs += 1
        self._open[fd].sync()

    def truncate(self, fd: int, size: int, /) -> None:
        self._open[fd].change(size)

    def allocate(self, fd: int, size: int) -> None:
        if len(self._open[fd].current) < size:
            self._open[fd].change(size)

    def will_need(self, fd: int, position: int, length: int) -> None:
        pass

    def size(self, path: str) -> int:
        return len(self._inode(path).current)

    def modified_ms(self, path: str) -> int:
        return self._inode(path).modified_ms

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        self._inode(path).modified_ms = modified_ms

    def is_in_memory(self, path: str) -> bool:
        return False

    def space(self, path: str) -> tuple[int, int]:
        return 1 << 40, 1 << 39

    def listdir(self, path: str) -> list[str]:
        if path not in self._folders:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        everything = [*self._names, *self._folders]
        return sorted(os.path.basename(name) for name in everything if os.path.dirname(name) == path and name != path)

    def mkdir(self, path: str) -> None:
        """Folders are durable at once: which of them are there is not what these tests are about."""
        while path not in self._folders:
            self._folders.add(path)
            path = os.path.dirname(path)

    def rmdir(self, path: str) -> None:
        self._folders.discard(path)

    def rename(self, old: str, new: str) -> None:
        if old in self._folders:
            self._rename_folder(old, new)
            return
        inode = self._inode(old)
        self._change((old, None), (new, inode))

    def _rename_folder(self, old: str, new: str) -> None:
        self._folders.discard(old)
        self._folders.add(new)
        for names in (self._names, self._durable_names):
            for path in [path for path in names if os.path.dirname(path) == old]:
                names[os.path.join(new, os.path.basename(path))] = names.pop(path)
        moved = self._changes.pop(old, [])
        self._changes[new] = [
            tuple((os.path.join(new, os.path.basename(path)), inode) for path, inode in change) for change in moved
        ]

    def unlink(self, path: str) -> None:
        self._inode(path)
        self._change((path, None))

    def fsync_dir(self, path: str) -> None:
        self.syncs += 1
        for change in self._changes.pop(path, []):
            self._make_durable(change)
