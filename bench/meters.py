"""What processes and the machine have used, read from /proc."""

import os
import resource
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PROC = Path("/proc")


def process_tree(pid: int) -> list[int]:
    """The process and its living descendants, because a broker may have helper processes, which are measured too."""
    found = [pid]
    for parent in found:
        for children in (_PROC / str(parent) / "task").glob("*/children"):
            found.extend(map(int, _read(children).split()))
    return found


def cpu_seconds(pid: int) -> float:
    """CPU time of a broker, user and system, including its helpers, also those that have ended."""
    return sum(_cpu_ticks(each) for each in process_tree(pid)) / _TICKS


def _cpu_ticks(pid: int) -> int:
    after_name = _read(_PROC / str(pid) / "stat").rpartition(")")[2].split()
    return sum(map(int, after_name[11:15]))  # utime, stime, and the same of the children that were waited for


def resident_bytes(pid: int) -> int:
    return sum(_resident_bytes(each) for each in process_tree(pid))


def _resident_bytes(pid: int) -> int:
    for line in _read(_PROC / str(pid) / "status").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def proportional_bytes(pid: int) -> int:
    """Memory, with pages that several processes map, as those of Python itself, counted once."""
    return sum(_proportional_bytes(each) for each in process_tree(pid))


def _proportional_bytes(pid: int) -> int:
    for line in _read(_PROC / str(pid) / "smaps_rollup").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


@dataclass(frozen=True, slots=True)
class MachineUse:
    """The counters at one moment: the use of all cores so far, and the part of our load programs."""

    busy: float
    total: float
    load_programs: float

    @classmethod
    def now(cls) -> "MachineUse":
        user, nice, system, idle, iowait, irq, softirq, steal = map(int, _read(_PROC / "stat").split()[1:9])
        busy = user + nice + system + irq + softirq + steal
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return cls(busy / _TICKS, (busy + idle + iowait) / _TICKS, used.ru_utime + used.ru_stime)

    def others_share_since(self, before: "MachineUse", broker_seconds: float) -> float:
        """The share of the machine used by neither the measured broker nor the load: it disturbs the results."""
        total = self.total - before.total
        others = self.busy - before.busy - broker_seconds - (self.load_programs - before.load_programs)
        return max(0.0, others / total) if total > 0 else 0.0


def _read(path: Path) -> str:
    """The content of a file of a process, or nothing if the process (a thread, a helper) has just ended."""
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
