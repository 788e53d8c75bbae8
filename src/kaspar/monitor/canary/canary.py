"""The canary as a whole: its clients, its tasks, and its report."""

import asyncio
import contextlib
import secrets
from collections.abc import Mapping
from typing import Final

from kaspar.base.clock import Clock, SystemClock
from kaspar.base.errors import KasparError
from kaspar.base.log import get_log
from kaspar.client.async_client import AsyncClient
from kaspar.monitor.canary.consuming import Consuming
from kaspar.monitor.canary.context import CanaryContext, log_bug
from kaspar.monitor.canary.ledger import Ledger, worst
from kaspar.monitor.canary.producing import Producing
from kaspar.monitor.canary.report import CanaryReport, CanaryStatus
from kaspar.monitor.canary.settings import CanarySettings
from kaspar.monitor.canary.topic import CanaryTopic, View
from kaspar.security.client import client_security

log = get_log(__name__)

_REQUEST_TIMEOUT_S: Final = 3.0
"""A connection is closed if the broker does not respond for this long. The long poll of a fetch is shorter."""
_BACKOFF_S: Final = 0.25
_METADATA: Final = "metadata"
_ARRANGING: Final = "arranging"


class Canary:
    """`client` are properties of a Java client, including `bootstrap.servers`. Raises InvalidSetting."""

    def __init__(self, settings: CanarySettings, client: Mapping[str, str], *, clock: Clock | None = None) -> None:
        self._settings = settings
        self._bootstrap_servers = client["bootstrap.servers"]
        self._client_id = f"{client.get('client.id', 'kaspar')}-canary"
        self._security = client_security(client)
        self._clock = clock or SystemClock()
        self._ledger = Ledger(late_ms=settings.canary_late_ms, window_ms=settings.canary_window_ms)
        self._context = CanaryContext(settings, self._ledger, self._clock, secrets.token_hex(4))
        self._since_ms = 0.0
        self._clients: tuple[AsyncClient, ...] = ()
        self._tasks: tuple[asyncio.Task[None], ...] = ()
        self._topic: CanaryTopic | None = None

    async def start(self) -> None:
        """Needs no broker: the canary waits for one, and reports this."""
        requests, fetches = self._clients = (self._new_client(), self._new_client())
        self._since_ms = self._context.now_ms()
        self._topic = CanaryTopic(requests, self._settings)
        consuming = Consuming(fetches, self._context)
        self._tasks = (
            asyncio.create_task(self._keep_view(self._topic, consuming)),
            asyncio.create_task(Producing(requests, self._context).run()),
        )
        for task in self._tasks:
            task.add_done_callback(log_bug)

    def _new_client(self) -> AsyncClient:
        return AsyncClient(
            self._bootstrap_servers, client_id=self._client_id, timeout_s=_REQUEST_TIMEOUT_S, security=self._security
        )

    async def stop(self) -> None:
        tasks, self._tasks = self._tasks, ()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        clients, self._clients = self._clients, ()
        for client in clients:
            await client.close()

    # --- View of the topic --------------------------------------------------------------------------------------------

    async def _keep_view(self, topic: CanaryTopic, consuming: Consuming) -> None:
        """Refresh the metadata at once when something fails, and rebalance the topic periodically."""
        interval_ms = self._settings.canary_rebalance_interval_ms
        arrange_at_ms = self._context.now_ms()
        try:
            while True:
                self._context.stale.clear()
                now_ms = self._context.now_ms()
                if await self._look(topic, consuming) and (self._context.view is None or now_ms >= arrange_at_ms):
                    changed = await self._arrange(topic)
                    arrange_at_ms = now_ms + interval_ms
                    if changed:
                        self._context.stale.set()
                await asyncio.sleep(_BACKOFF_S)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(max(arrange_at_ms - self._context.now_ms(), 0) / 1000):
                        await self._context.stale.wait()
        finally:
            await consuming.close()

    async def _look(self, topic: CanaryTopic, consuming: Consuming) -> bool:
        try:
            view = await topic.look(self._context.now_ms())
        except (OSError, KasparError) as problem:
            self._context.failed(_METADATA, problem)
            return False
        self._context.succeeded(_METADATA)
        self._see(view)
        consuming.follow(view)
        return True

    def _see(self, view: View | None) -> None:
        before, self._context.view = self._context.view, view
        if before is not None and (view is None or before.topic_id != view.topic_id):
            self._ledger.replace()

    async def _arrange(self, topic: CanaryTopic) -> bool:
        try:
            changed = await topic.arrange(self._context.view, self._context.now_ms())
        except (OSError, KasparError) as problem:
            if _ARRANGING not in self._context.problems:
                log.warning("cannot create or rebalance the canary's topic", topic=topic.name, reason=str(problem))
            self._context.problems[_ARRANGING] = str(problem)
            return False
        self._context.succeeded(_ARRANGING)
        return changed

    # --- Report -------------------------------------------------------------------------------------------------------

    def report(self) -> CanaryReport:
        now_ms = self._context.now_ms()
        leaders = {} if self._context.view is None else self._context.view.leaders
        partitions = self._ledger.report(leaders, now_ms)
        status = worst(partitions)
        if not partitions and now_ms - self._since_ms > self._settings.canary_late_ms:
            status = CanaryStatus.UNAVAILABLE
        return CanaryReport(
            self._clock.now_ms(),
            self._settings.canary_topic,
            self._settings.canary_window_ms,
            status,
            next(iter(self._context.problems.values()), ""),
            self._ledger.counts(),
            self._ledger.measured(leaders, now_ms),
            partitions,
            0 if self._topic is None else self._topic.created,
        )
