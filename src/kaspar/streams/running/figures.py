"""The counters of a running sub-topology, on the driver."""

import threading
from collections import Counter
from collections.abc import Sequence

from kaspar.streams.running.reports import TaskReport

STREAM_TIME = "task"


class Figures:
    """The counters. Written by the thread of the query, read by other threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.batches = 0
        self.records = 0
        self.written = 0
        self._dropped: Counter[str] = Counter()
        self.stream_time_ms: int | None = None
        self._state_bytes: dict[int, int] = {}

    def add(self, reports: Sequence[TaskReport]) -> None:
        """Add the reports of a published batch."""
        with self._lock:
            self.batches += 1
            for report in reports:
                self.records += report.records
                self.written += report.written
                self._dropped.update(report.dropped)
                for partition, result in report.partitions.items():
                    self._state_bytes[partition] = result.state_bytes
                    if (time := result.meta.get(STREAM_TIME, -1)) >= 0:
                        self.stream_time_ms = max(time, self.stream_time_ms or 0)

    @property
    def dropped(self) -> Counter[str]:
        with self._lock:
            return Counter(self._dropped)

    @property
    def state_bytes(self) -> int:
        with self._lock:
            return sum(self._state_bytes.values())
