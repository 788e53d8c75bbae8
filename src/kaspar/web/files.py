"""Files that are read again while a service runs, such as certificates and passwords."""

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
        """Raises KasparError with a sentence, and leaves what was loaded before as it is."""


class Reloader:
    """Loads once at the start, where a problem is raised, and later what has changed, where it is logged."""

    def __init__(self, *loaded: Loaded) -> None:
        """Raises KasparError."""
        self._seen: dict[Loaded, dict[Path, tuple[int, int]]] = {}
        for each in loaded:
            self._seen[each] = _state(each)
            each.load()

    def reload_changed(self) -> None:
        """If changed files cannot be used, the earlier ones stay in use."""
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
    """A file that is replaced has another inode, also if its time stays the same."""
    state = {}
    for file in loaded.files():
        try:
            found = file.stat()
        except OSError:
            continue
        state[file] = found.st_mtime_ns, found.st_ino
    return state
