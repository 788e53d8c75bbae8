"""Creates topics that clients request metadata for (`auto.create.topics.enable`).

A topic is created DELAY_S after the response that reports it as unknown. Kafka has a similar delay, because its brokers
forward creations to the controller, and clients rely on it: a group reader of kafka-go that finds its topic unknown,
and a round trip later with all its partitions, waits for their number to change and never reads. So a topic that was
reported to a connection as unknown stays unknown to that connection for DELAY_S, whenever it is created: two lookups in
a row agree. Clients retry after 100 ms (librdkafka, the Java client, kafka-python), so the delay costs them nothing.

A topic is created once, however many requests name it in the meantime. The controller gets a few topics at a time, so
that one client's names neither hold up the event loop nor make a change too large for it. A topic that is created
explicitly in the meantime is left as it is, and reported. When the broker stops, pending creations are dropped: clients
retry.
"""

import asyncio
import itertools
import math
import time
from collections.abc import Collection, Iterable
from typing import Final, TypeAlias

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.log import get_log
from kaspar.broker.services import Tasks
from kaspar.controller.channel import ControllerChannel
from kaspar.controller.events import CreateTopics, NewTopic
from kaspar.metadata.images import ImageSource

log = get_log(__name__)

DELAY_S: Final = 0.05
MOST_WAITING: Final = 10_000
"""Further names are ignored: their clients retry."""
AT_ONCE: Final = 20
"""The number of topics created in one event, as with CreateTopics (network/divisions.py)."""
REPORT_EVERY_S: Final = 10.0
_NAMES_IN_LOG: Final = 10

_Reported: TypeAlias = dict[str, float]
"""When a topic was first reported as unknown to each connection, by the connection's peer."""


class AutoCreation:
    def __init__(self, images: ImageSource, controller: ControllerChannel, tasks: Tasks) -> None:
        self._images = images
        self._controller = controller
        self._tasks = tasks
        self._wanted: dict[str, _Reported] = {}
        self._new: dict[str, _Reported] = {}
        """Topics that are being created, or were created less than DELAY_S ago."""
        self._unreported = 0
        self._next_report = -math.inf

    def want(self, names: Iterable[str], peer: str) -> None:
        """Create these topics soon, with the broker's defaults; they are being reported to this connection as unknown.
        The controller refuses invalid names, which the response has already reported.
        """
        is_first = not self._wanted
        now = time.monotonic()
        for name in names:
            reported = self._new.get(name, self._wanted.get(name))
            if reported is None:
                if len(self._wanted) + len(self._new) >= MOST_WAITING:
                    break
                reported = self._wanted[name] = {}
            if len(reported) < MOST_WAITING:
                reported.setdefault(peer, now)
        if is_first and self._wanted:
            self._tasks.spawn(self._create(), name="creation of topics that were asked for")

    def is_hidden_from(self, peer: str, name: str) -> bool:
        """Whether the topic was reported to this connection as unknown less than DELAY_S ago, and may exist by now."""
        reported = self._new.get(name)
        return reported is not None and time.monotonic() - reported.get(peer, -math.inf) < DELAY_S

    async def _pause(self) -> None:
        await asyncio.sleep(DELAY_S)

    async def _create(self) -> None:
        await self._pause()
        wanted, self._wanted = self._wanted, {}
        topics = self._images.current.topics
        new = {name: reported for name, reported in wanted.items() if name not in topics}
        if not new:
            return
        self._new |= new
        try:
            names = iter(new)
            while some := tuple(map(NewTopic, itertools.islice(names, AT_ONCE))):
                outcomes = await self._controller.submit(CreateTopics(some))
                self._show(outcome.name for outcome in outcomes if outcome.outcome.error is not ErrorCode.NONE)
            await self._pause()
        except Refused as refusal:
            self._report(new, refusal)
        finally:
            self._show(new)

    def _report(self, names: Collection[str], refusal: Refused) -> None:
        """Log a failure, at most every REPORT_EVERY_S: while there is no controller, clients keep retrying."""
        self._unreported += len(names)
        now = time.monotonic()
        if now >= self._next_report:
            named = ",".join(itertools.islice(names, _NAMES_IN_LOG))
            log.warning("topics could not be created", count=self._unreported, topics=named, reason=refusal.message)
            self._unreported, self._next_report = 0, now + REPORT_EVERY_S

    def _show(self, names: Iterable[str]) -> None:
        for name in names:
            self._new.pop(name, None)
