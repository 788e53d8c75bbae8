"""A monitor whose rounds a test drives: each one reads the broker as it is, ten seconds of the monitor's time later."""

import asyncio
import time
from types import TracebackType
from typing import Final, Self

from kaspar.base.clock import ManualClock
from kaspar.monitor.core import Monitor
from kaspar.monitor.settings import MonitorConfig
from kaspar.monitor.views import GroupLag, PartitionLag, Status

INTERVAL_MS: Final = 10_000
WINDOW: Final = 10


class DrivenMonitor:
    def __init__(self, bootstrap_servers: str, **settings: str) -> None:
        self.clock = ManualClock(time.time_ns() // 1_000_000)
        values = {"bootstrap.servers": bootstrap_servers, "client.default.api.timeout.ms": "2000"}
        self.monitor = Monitor(MonitorConfig.of(values | settings), clock=self.clock)
        self._runner = asyncio.Runner()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runner.run(self.monitor.stop())
        self._runner.close()

    def round(self) -> bool:
        """Whether brokers have responded."""
        self.clock.advance(INTERVAL_MS)
        return self._runner.run(self.monitor.read_lag())

    def look_at_cluster(self) -> bool:
        return self._runner.run(self.monitor.read_cluster())

    def group(self, name: str) -> GroupLag:
        found = self.monitor.lag.group(name)
        assert found is not None, f"{name} is not among {list(self.monitor.lag.groups())}"
        return found

    def partition(self, group: str) -> PartitionLag:
        """Of a group with one."""
        (partition,) = self.group(group).partitions
        return partition

    def status_after_round(self, group: str) -> Status:
        """Of a group with one partition."""
        assert self.round()
        return self.partition(group).status
