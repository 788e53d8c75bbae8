"""A log file of bounded size: it is renamed when it is large or a new day begins, and only so many files are kept.

Only the writer's thread (base/log_writer.py) writes to it and therefore renames it: no caller waits for a disk.

Rules:
- `server.log` becomes `server.log.2026-11-18-053000`, the time at which it was renamed, so names sort by age.
- Another program may rename, remove or truncate the file (logrotate, with or without `copytruncate`): its name is
  checked every second, and the file is reopened if it is no longer the same one. No signal is needed.
- A file that cannot be renamed is still written to. One that cannot be written raises OSError for each line, which the
  writer counts; a line that was cut off because the disk is full is ended before the next one is written.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LOOK_AGAIN_S: Final = 1.0
_MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Rotation:
    """When a file is renamed, and how many renamed ones are kept."""

    max_bytes: int = 100 * _MIB
    period_s: int = 24 * 60 * 60
    """A file contains the lines of one such period of local time; 0: no limit."""
    kept: int = 10


DEFAULT_ROTATION: Final = Rotation()


class RotatingFile:
    """The stream of a handler: `write` and `flush`. Owned by one thread."""

    def __init__(
        self, path: Path, rotation: Rotation = DEFAULT_ROTATION, *, now: Callable[[], float] = time.time
    ) -> None:
        """Raises OSError if the file cannot be opened: a mistake in the settings, which is reported at the start."""
        self.path = path
        self._rotation = rotation
        self._now = now
        self._file = -1
        self._size = 0
        self._period = 0
        self._look_again = 0.0
        self._is_cut = False
        self._open()

    def write(self, text: str) -> None:
        data = text.encode(errors="backslashreplace")
        self._look(len(data))
        self._append(b"\n" + data if self._is_cut else data)

    def flush(self) -> None:
        """Nothing is buffered."""

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _append(self, data: bytes) -> None:
        written = 0
        try:
            while written < len(data):
                written += os.write(self._file, data[written:])
        finally:
            self._size += written
            if written:
                self._is_cut = written < len(data)

    # -- which file it is --------------------------------------------------------------------------------------------

    def _look(self, coming_bytes: int) -> None:
        now = self._now()
        if now >= self._look_again or now < self._look_again - LOOK_AGAIN_S:  # also if the clock was set back
            self._look_again = now + LOOK_AGAIN_S
            self._reopen_if_moved()
        rotation = self._rotation
        is_large = self._size > 0 and self._size + coming_bytes > rotation.max_bytes
        period = self._period_of(now)
        if is_large or period != self._period:
            self._rotate(now, period)

    def _period_of(self, at: float) -> int:
        period_s = self._rotation.period_s
        return int(at - time.timezone) // period_s if period_s else 0

    def _reopen_if_moved(self) -> None:
        opened = os.fstat(self._file) if self._file >= 0 else None
        try:
            named = os.stat(self.path)
        except FileNotFoundError:
            named = None
        if opened is None or named is None or (named.st_dev, named.st_ino) != (opened.st_dev, opened.st_ino):
            self._open()
        else:
            self._size = named.st_size

    def _open(self) -> None:
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o640)
        self.close()
        self._file = file
        state = os.fstat(file)
        self._size = state.st_size
        # The time of the last line that an earlier run has written: a file's creation time is not portable.
        self._period = self._period_of(state.st_mtime if state.st_size else self._now())
        self._look_again = self._now() + LOOK_AGAIN_S

    def _rotate(self, now: float, period: int) -> None:
        self._period = period
        if self._size == 0:
            return
        try:
            os.rename(self.path, self._renamed(now))
            self._open()
        except OSError:  # the line is more important: the next attempt is made after as much has been written again
            self._size = 0
            return
        self._period = period
        self._remove_old()

    def _renamed(self, now: float) -> Path:
        stamp = time.strftime("%Y-%m-%d-%H%M%S", time.localtime(now))
        renamed, number = self.path.with_name(f"{self.path.name}.{stamp}"), 1
        while renamed.exists():
            number += 1
            renamed = self.path.with_name(f"{self.path.name}.{stamp}-{number:03}")
        return renamed

    def _remove_old(self) -> None:
        for old in renamed_files(self.path)[: -self._rotation.kept or None]:
            try:
                old.unlink()
            except OSError:
                return


def renamed_files(path: Path) -> list[Path]:
    """The renamed files of a log file, oldest first."""
    start = f"{path.name}."
    return sorted(each for each in path.parent.iterdir() if each.name.startswith(start) and _is_stamp(each.name, start))


def _is_stamp(name: str, start: str) -> bool:
    """Whether `RotatingFile` has created this name: no other file is ever removed."""
    digits = name.removeprefix(start).split("-")
    return [len(each) for each in digits[:4]] == [4, 2, 2, 6] and len(digits) <= 5 and all(map(str.isdecimal, digits))
