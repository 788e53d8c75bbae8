"""The lock of a log directory, so that only one broker uses it: a `.lock` file, and a list of this process's locks.

Kafka locks the file with fcntl, which other programs see. flock, which is used as well, is not lost when this process
opens and closes the file again. Neither stops a second broker in the same process; the list does.
"""

import fcntl
import os
import threading

from kaspar.base.errors import KasparError
from kaspar.storage.disk.file_names import LOCK

_held: set[str] = set()
_guard = threading.Lock()


class DirectoryInUse(KasparError):
    def __init__(self, directory: str, sentence: str) -> None:
        super().__init__(sentence)
        self.directory = directory


class DirectoryLock:
    def __init__(self, directory: str) -> None:
        """Take the lock. Raises DirectoryInUse if another broker has it; OSError if the directory cannot be used."""
        self._path = os.path.realpath(directory)
        with _guard:
            if self._path in _held:
                raise DirectoryInUse(directory, f"{directory} is in use by another broker in this process")
            self._fd = os.open(os.path.join(directory, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(self._fd)
                raise DirectoryInUse(
                    directory, f"{directory} is in use by another broker. Two brokers cannot share a log directory."
                ) from None
            except OSError:
                os.close(self._fd)
                raise
            _held.add(self._path)

    def release(self) -> None:
        """Safe to call twice."""
        with _guard:
            if self._path in _held:
                _held.discard(self._path)
                os.close(self._fd)
