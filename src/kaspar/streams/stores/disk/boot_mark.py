"""Detects whether the files of a partition survived the last shutdown of the machine.

LMDB is written without sync: writes survive the end of the process, but not a crash of the machine, which may leave
some pages written and others not. Therefore a file beside it contains the kernel's boot id while there are unsynced
writes. If that differs from the current boot id, the files cannot be trusted.
"""

import os
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_SYNCED = "synced"


def current_boot_id() -> str:
    return _BOOT_ID.read_text().strip()


class BootMark:
    """The file with the boot id. Only changed in a write transaction of its environment: by one process at a time."""

    def __init__(self, file: Path, boot_id: str | None = None) -> None:
        self._file = file
        self._boot_id = boot_id or current_boot_id()

    def is_trusted(self) -> bool:
        return self._read() in (self._boot_id, _SYNCED)

    def before_write(self) -> None:
        """Called before a write transaction is committed."""
        if self._read() != self._boot_id:
            self._write(self._boot_id)

    def after_sync(self) -> None:
        """Called if nothing was written since the last sync."""
        self._write(_SYNCED)

    def remove(self) -> None:
        """Mark the files as not trusted."""
        self._file.unlink(missing_ok=True)

    def _read(self) -> str | None:
        try:
            return self._file.read_text()
        except FileNotFoundError:
            return None

    def _write(self, text: str) -> None:
        """Write the mark and sync it, so that it is on disk before the writes that it covers."""
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
