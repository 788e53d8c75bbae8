"""The monitor: watches one cluster from outside, once for all of its users.

    monitor = Monitor(MonitorConfig.of({"bootstrap.servers": "localhost:9092"}))
    await monitor.start()
    monitor.lag.group("billing")
    async with monitor.subscribe() as changes:
        async for _ in changes:
            ...

Rounds read offsets, the cluster and the metrics pages at the configured intervals, regardless of the number of
subscribers. While the cluster is unreachable, the last known values are kept, and requests are less frequent.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final

from kaspar.base.clock import Clock, SystemClock
from kaspar.base.errors import KasparError
from kaspar.base.ids import TopicPartition
from kaspar.base.log import get_log
from kaspar.monitor.canary import Canary, CanaryReport
from kaspar.monitor.changes import Changes, Watcher
from kaspar.monitor.checkups import Checkups
from kaspar.monitor.cluster import read_cluster
from kaspar.monitor.doctor import Finding
from kaspar.monitor.lag.latest import LatestLag
from kaspar.monitor.lag.rounds import LagRounds
from kaspar.monitor.scraping.pages import MetricsPages
from kaspar.monitor.scraping.rates import Rates
from kaspar.monitor.sessions import AdminThread
from kaspar.monitor.settings import MonitorConfig
from kaspar.monitor.views import ClusterSnapshot

log = get_log(__name__)

_MAX_BACKOFF_S: Final = 30.0
_MANY_PARTITIONS: Final = 2_000
"""In a larger cluster, only the end offsets of partitions with committed offsets are read in every round."""


class Monitor:
    def __init__(self, config: MonitorConfig, *, clock: Clock | None = None) -> None:
        """Raises InvalidSetting with a sentence."""
        self.config = config
        settings = config.settings
        self.clock = clock or SystemClock()
        self.rates = Rates(history_ms=settings.rates_history_ms)
        self.lag = LatestLag(history_ms=settings.lag_history_ms)
        self.cluster: ClusterSnapshot | None = None
        self.cluster_problem = ""
        """Why the last attempt to read the cluster failed; empty if it succeeded."""
        self.findings: tuple[Finding, ...] = ()
        """The findings from the doctor's last look."""
        self.findings_at_ms: int | None = None
        """The time of these findings; None before the first."""
        self._pages = MetricsPages(settings)
        self._admin = AdminThread(config.new_admin, "admin")
        self._checkups = Checkups(config)
        self._rounds = LagRounds(settings, AdminThread(config.new_admin, "lag"), self.lag, self.clock)
        self._canary = Canary(settings, config.client, clock=self.clock) if settings.canary_enable else None
        self._changes = Changes()
        self._partitions: tuple[TopicPartition, ...] = ()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Needs no broker; rounds wait for one."""
        settings = self.config.settings
        if self._canary is not None:
            await self._canary.start()
        self._tasks = [
            asyncio.create_task(self._repeat("cluster", self.read_cluster, lambda: settings.cluster_interval_ms)),
            asyncio.create_task(self._repeat("lag", self.read_lag, lambda: settings.lag_interval_ms)),
            asyncio.create_task(
                self._repeat("rates", self.read_rates, self._rates_interval_ms, self._pause_until_watched)
            ),
            asyncio.create_task(self._repeat("doctor", self.read_findings, lambda: settings.doctor_interval_ms)),
        ]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        if self._canary is not None:
            await self._canary.stop()
        await asyncio.gather(self._admin.close(), self._rounds.close(), self._checkups.close(), self._pages.close())

    @property
    def canary(self) -> CanaryReport | None:
        """None if the canary is not enabled."""
        return None if self._canary is None else self._canary.report()

    @property
    def page_problems(self) -> Mapping[int, str]:
        """Why metrics pages could not be read at the last attempt, by broker id."""
        return self._pages.problems

    def subscribe(self) -> AbstractAsyncContextManager[Watcher]:
        """Rates are read more often while there are subscribers."""
        return self._changes.subscribe()

    async def remove_group(self, group: str) -> bool:
        """Forget a group. Returns whether it was known."""
        return await self._rounds.remove(group)

    # --- Rounds, which return whether something could be read ---------------------------------------------------------

    async def read_cluster(self) -> bool:
        now_ms = self.clock.now_ms()
        try:
            cluster, self._partitions = await self._admin.call(lambda admin: read_cluster(admin, now_ms))
        except (KasparError, OSError) as problem:
            self.cluster_problem = str(problem)
            return False
        self.cluster, self.cluster_problem = cluster, ""
        self.rates.add_gauges(
            [
                ("under_replicated", len(cluster.under_replicated)),
                ("offline_partitions", len(cluster.offline)),
                ("brokers", len(cluster.brokers)),
            ],
            now_ms,
        )
        return True

    async def read_lag(self) -> bool:
        also = self._partitions if len(self._partitions) <= _MANY_PARTITIONS else ()
        has_read = await self._rounds.run(also)
        if has_read and not self._pages.exist and also:
            ends = {where: each.high_watermark for where, each in self.lag.ends().items()}
            self.rates.add_ends(ends, self.clock.now_ms())
        return has_read

    async def read_rates(self) -> bool:
        if not self._pages.exist:
            return True
        pages = await self._pages.read()
        self.rates.add_pages(pages, self.clock.now_ms())
        return bool(pages)

    async def read_findings(self, *, everything: bool = False) -> bool:
        """With `everything`, the doctor rereads the slow-changing parts too."""
        try:
            self.findings = await self._checkups.run(everything=everything)
        except (KasparError, OSError):  # read_cluster reports the reason
            return False
        self.findings_at_ms = self.clock.now_ms()
        return True

    def _rates_interval_ms(self) -> int:
        settings = self.config.settings
        return settings.rates_interval_ms if self._changes.watched else settings.rates_idle_interval_ms

    async def _pause_until_watched(self, seconds: float) -> None:
        """Pause, but only until the first watcher subscribes."""
        if self._changes.watched:
            await asyncio.sleep(seconds)
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._changes.wait_for_watcher(), seconds)

    async def _repeat(
        self,
        name: str,
        read: Callable[[], Awaitable[bool]],
        interval_ms: Callable[[], int],
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        failures = 0
        while True:
            started = self.clock.monotonic()
            try:
                has_read = await read()
            except Exception:  # the edge of the task: later rounds must still run
                log.exception("a monitor round failed", round=name)
                has_read = False
            self._changes.notify()
            failures = 0 if has_read else failures + 1
            pause_s = interval_ms() / 1000
            if failures:
                pause_s = max(pause_s, min(pause_s * 2 ** (failures - 1), _MAX_BACKOFF_S))
            await pause(max(pause_s - (self.clock.monotonic() - started), 0))
