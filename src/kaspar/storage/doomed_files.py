"""Files that are no longer part of a log and wait for `file.delete.delay.ms`, so that reads under way can finish."""

import threading

from kaspar.storage.files import Files, unlink_if_there


class DoomedFiles:
    __slots__ = ("_lock", "_new", "_waiting")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._new: list[str] = []
        self._waiting: list[tuple[int, list[str]]] = []

    def add(self, paths: list[str]) -> None:
        with self._lock:
            self._new.extend(paths)

    def remove_due(self, files: Files, now_ms: int, delay_ms: int) -> int:
        """The wait of what was added since the last call begins now. How many files were removed."""
        with self._lock:
            if self._new:
                self._waiting.append((now_ms + delay_ms, self._new))
                self._new = []
            due = [paths for at_ms, paths in self._waiting if at_ms <= now_ms]
            self._waiting = [entry for entry in self._waiting if entry[0] > now_ms]
        return sum(unlink_if_there(files, path) for paths in due for path in paths)
