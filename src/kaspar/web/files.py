"""Files that are reloaded while a service runs, such as certificates and passwords."""

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from kaspar.base.errors import KasparError
from kaspar.base.log import get_log

log = get_log(__name__)


class Loaded(Protocol):
    """State that is loaded from files."""

    def files(self) -> Iterable[Path]: ...

    def load(self) -> None:
        """Load the files. If it raises KasparError, the state loaded before is unchanged."""


class Reloader:
    """Loads files at the start, and again when they change. An error is raised at the start, and later only logged."""

    def __init__(self, *loaded: Loaded) -> None:
        """Raises KasparError."""
        self._seen: dict[Loaded, dict[Path, tuple[int, int]]] = {}
        for each in loaded:
            self._seen[each] = _state(each)
            each.load()

    def reload_changed(self) -> None:
        """If changed files cannot be loaded, the earlier state remains in use."""
        for each, seen in self._seen.items():
            state = _state(each)
            if state == seen:
                continue
            self._seen[each] = state
            try:
                each.load()
            except KasparError as problem:
                log.warning("a changed file was not loaded", problem=str(problem))


def _state(loaded: Loaded) -> dict[Path, tuple[int, int]]:
    """The modification time and the inode of each file: a replaced file has another inode even if its time is the
    same.
    """
    state = {}
    for file in loaded.files():
        try:
            found = file.stat()
        except OSError:
            continue
        state[file] = found.st_mtime_ns, found.st_ino
    return state
