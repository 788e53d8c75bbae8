"""A canary on an event loop of its own, in a thread, as tests of faults need it: quick to notice."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Final, Self

from kaspar.monitor.canary import Canary, CanaryReport, CanarySettings, CanaryStatus

LATE_MS: Final = 800
DEFAULT_LATE_MS: Final = CanarySettings().canary_late_ms
"""For tests of false alarms: what the users' canaries have."""
NOTICED_S: Final = LATE_MS / 1000 + 1.5
"""Within this time the canary has to report a fault: one that is late, and a request that was under way."""
RECOVERED_S: Final = 15.0
WINDOW_MS: Final = 2_000


class RunningCanary:
    def __init__(
        self,
        bootstrap_servers: str,
        *,
        late_ms: int = LATE_MS,
        removed_ms: int = 300_000,
        client: Mapping[str, str] | None = None,
    ) -> None:
        """`client` are more properties of its clients."""
        settings = CanarySettings(
            canary_interval_ms=50,
            canary_late_ms=late_ms,
            canary_delivery_timeout_ms=max(5_000, 2 * late_ms),
            canary_window_ms=WINDOW_MS,
            canary_rebalance_interval_ms=300,
            canary_broker_removed_ms=removed_ms,
        )
        self._canary = Canary(settings, {"bootstrap.servers": bootstrap_servers, **(client or {})})
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="canary")

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._canary.start(), self._loop).result(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._canary.stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def report(self) -> CanaryReport:
        async def made() -> CanaryReport:
            return self._canary.report()

        return asyncio.run_coroutine_threadsafe(made(), self._loop).result(10)

    @contextmanager
    def watched(self) -> Iterator[set[CanaryStatus]]:
        """All statuses that partitions have meanwhile: it looks much more often than the window is long."""
        seen: set[CanaryStatus] = set()
        ended = threading.Event()

        def look() -> None:
            while not ended.wait(0.1):
                seen.update(each.status for each in self.report().partitions)

        looking = threading.Thread(target=look, name="looks at the canary")
        looking.start()
        try:
            yield seen
        finally:
            ended.set()
            looking.join(10)

    def wait(self, holds: Callable[[CanaryReport], bool], what: str, seconds: float = NOTICED_S) -> CanaryReport:
        """The first report of which it holds."""
        until = time.monotonic() + seconds
        while not holds(report := self.report()):
            assert time.monotonic() < until, f"not within {seconds:g} s: {what}; {report}"
            time.sleep(0.02)
        return report

    def wait_healthy(self, partitions: int, *, since: CanaryReport | None = None) -> CanaryReport:
        """When ten records more than `since` were read from each partition, each led by another broker."""
        consumed = {each.partition: each.counts.consumed for each in since.partitions} if since is not None else {}

        def is_healthy(report: CanaryReport) -> bool:
            for each in report.partitions:
                consumed.setdefault(each.partition, each.counts.consumed if since is not None else 0)
            return (
                len(report.partitions) == partitions
                and len({each.leader for each in report.partitions}) == partitions
                and all(each.counts.consumed >= consumed[each.partition] + 10 for each in report.partitions)
            )

        return self.wait(is_healthy, "records pass through every broker", RECOVERED_S)
