"""The disk usage of a partition's state."""

import os
from pathlib import Path

_BLOCK_SIZE = 512  # the unit of st_blocks on all file systems


def size_on_disk(directory: Path) -> int:
    """The bytes of all files in the directory of a partition, not counting holes."""
    size = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            try:
                size += (Path(folder) / name).stat().st_blocks * _BLOCK_SIZE
            except FileNotFoundError:
                continue
    return size
