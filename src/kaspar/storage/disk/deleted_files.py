"""Files that are no longer part of a log. They stay for `file.delete.delay.ms`, so that reads under way can finish."""

import os
import threading

from kaspar.storage.disk.files import Files, unlink_if_there


class DeletedFiles:
    __slots__ = ("_lock", "_new", "_waiting")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._new: list[str] = []
        self._waiting: list[tuple[int, list[str]]] = []

    def add(self, paths: list[str]) -> None:
        with self._lock:
            self._new.extend(paths)

    def folder_renamed(self, folder: str) -> None:
        with self._lock:
            self._new = _moved(self._new, folder)
            self._waiting = [(at_ms, _moved(paths, folder)) for at_ms, paths in self._waiting]

    def remove_due(self, files: Files, now_ms: int, delay_ms: int) -> int:
        """Remove the files whose delay has passed; returns how many. The delay of newly added files begins now."""
        with self._lock:
            if self._new:
                self._waiting.append((now_ms + delay_ms, self._new))
                self._new = []
            due = [paths for at_ms, paths in self._waiting if at_ms <= now_ms]
            self._waiting = [entry for entry in self._waiting if entry[0] > now_ms]
        return sum(unlink_if_there(files, path) for paths in due for path in paths)


def _moved(paths: list[str], folder: str) -> list[str]:
    return [os.path.join(folder, os.path.basename(path)) for path in paths]
