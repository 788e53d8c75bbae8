"""The metrics of the process, under the names that Prometheus' own libraries use. For Linux, from /proc."""

import os
import resource
import time
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc/self")
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")

# Fields of /proc/self/stat, counted after the command's name.
_START_TICKS: Final = 19
_VIRTUAL_BYTES: Final = 20
_RESIDENT_PAGES: Final = 21


def _stat() -> list[str]:
    """The fields after the command's name, which is in parentheses and may itself contain spaces and parentheses."""
    return (_PROC / "stat").read_text().rpartition(")")[2].split()


def resident_memory_bytes() -> int:
    return int(_stat()[_RESIDENT_PAGES]) * _PAGE_BYTES


def virtual_memory_bytes() -> int:
    return int(_stat()[_VIRTUAL_BYTES])


def cpu_seconds() -> float:
    return time.process_time()


def start_time_seconds() -> float:
    """When the process started, in seconds since 1970."""
    since_boot = int(_stat()[_START_TICKS]) / _TICKS
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + since_boot


def open_files() -> int:
    return len(os.listdir(_PROC / "fd"))


def max_open_files() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def disk_bytes(way: str) -> int:
    """Bytes read from or written to disks, without the page cache. -1 if the kernel does not report it, like Kafka."""
    try:
        lines = (_PROC / "io").read_text().splitlines()
    except OSError:  # no accounting, or no permission
        return -1
    return next((int(line.partition(":")[2]) for line in lines if line.startswith(f"{way}:")), -1)
