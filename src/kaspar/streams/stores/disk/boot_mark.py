"""Whether the files of a partition survived the last shutdown of the machine.

LMDB is written without sync: what a process has written survives it, but not a crash of the machine, which may leave
some pages written and others not. So a file beside it has the kernel's boot id as long as there are unsynced writes.
With another boot id than today's the files cannot be trusted.
"""

import os
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_SYNCED = "synced"


def current_boot_id() -> str:
    return _BOOT_ID.read_text().strip()


class BootMark:
    """Changed only in a write transaction of the environment that it belongs to, so by one process at a time."""

    def __init__(self, file: Path, boot_id: str | None = None) -> None:
        self._file = file
        self._boot_id = boot_id or current_boot_id()

    def is_trusted(self) -> bool:
        return self._read() in (self._boot_id, _SYNCED)

    def before_write(self) -> None:
        """Before a write transaction is committed."""
        if self._read() != self._boot_id:
            self._write(self._boot_id)

    def after_sync(self) -> None:
        """When nothing was written since the last sync."""
        self._write(_SYNCED)

    def remove(self) -> None:
        """The files are not to be trusted any more."""
        self._file.unlink(missing_ok=True)

    def _read(self) -> str | None:
        try:
            return self._file.read_text()
        except FileNotFoundError:
            return None

    def _write(self, text: str) -> None:
        """The mark is on disk before any write that it is about."""
        new = self._file.with_suffix(f".{os.getpid()}.new")
        with new.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        new.rename(self._file)
        directory = os.open(self._file.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
