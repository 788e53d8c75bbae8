"""Small file systems for tests: of a few megabytes, or made read-only while in use. Root alone can mount them."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.peers.downloads import ToolMissingError


@contextmanager
def small_disk(folder: Path, *, megabytes: int) -> Iterator[Path]:
    """A file system of its own at `folder`, gone at the end. ToolMissingError where this user may not mount."""
    folder.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "kaspar-test", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False) if os.geteuid() == 0 else None
    if done is None or done.returncode != 0:
        raise ToolMissingError("mounting a tmpfs needs root" + (f": {done.stderr.strip()}" if done is not None else ""))
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def make_read_only(folder: Path) -> None:
    """Works only while no file there is open for writing."""
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)


def make_writable(folder: Path) -> None:
    subprocess.run(["mount", "-o", "remount,rw", str(folder)], check=True)


def free_bytes(folder: Path) -> int:
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize
