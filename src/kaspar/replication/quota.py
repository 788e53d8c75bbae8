"""The rate of throttled replication traffic, and its limit (KIP-73): Kafka's ReplicationQuotaManager.

The rate is measured over the last `replication.quota.window.num` windows, including the current one, as in SimpleRate.
"""

from collections import deque
from collections.abc import Collection
from typing import Final

UNLIMITED: Final = (1 << 63) - 1
ALL_REPLICAS: Final = "*"


class ReplicationQuota:
    def __init__(self) -> None:
        self.limit_bytes_per_s = UNLIMITED
        self.window_ms = 1000
        self.window_count = 11
        self._windows: deque[tuple[int, int]] = deque()
        """The start of each window, and the bytes in it."""

    def record(self, size: int, now_ms: int) -> None:
        self._expire(now_ms)
        windows = self._windows
        if windows and now_ms - windows[-1][0] < self.window_ms:
            begun, before = windows.pop()
            windows.append((begun, before + size))
        else:
            windows.append((now_ms, size))

    def is_exceeded(self, now_ms: int) -> bool:
        if self.limit_bytes_per_s >= UNLIMITED:
            return False
        self._expire(now_ms)
        if not self._windows:
            return False
        elapsed_ms = max(now_ms - self._windows[0][0], self.window_ms)
        return sum(size for _, size in self._windows) * 1000 > self.limit_bytes_per_s * elapsed_ms

    def _expire(self, now_ms: int) -> None:
        while self._windows and now_ms - self._windows[0][0] >= self.window_ms * self.window_count:
            self._windows.popleft()


def is_listed(throttled_replicas: Collection[str], partition: int, broker_id: int) -> bool:
    """Whether a topic's `*.replication.throttled.replicas` contains the replica of this broker."""
    return ALL_REPLICAS in throttled_replicas or f"{partition}:{broker_id}" in throttled_replicas
