"""Topics that clients bring about by asking for them (`auto.create.topics.enable`).

They are created a moment after the response that calls them unknown, as with Kafka, whose brokers send creations to a
controller elsewhere. Clients count on that moment: a group reader of kafka-go that finds its topic unknown, and a round
trip later with all its partitions, waits for their number to change and never reads. So a connection that was told
"unknown" is not told otherwise for that moment either: whenever the topic is created, two looks in a row agree. Whoever
is told "unknown" asks again after 100 ms (librdkafka, the Java client, kafka-python), so the moment costs them nothing.

However many requests name a topic meanwhile, it is created once. The controller is asked for a few at a time, so that
one client's names neither hold up the event loop nor make a change too large for it. One that somebody creates
explicitly meanwhile is left as it was made, and shown. When the broker stops, what is not created yet is not: its
clients ask again.
"""

import asyncio
import itertools
import math
import time
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Final, TypeAlias

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.log import get_log
from kaspar.metadata.events import CreateTopics, NewTopic

if TYPE_CHECKING:
    from kaspar.broker.server import Broker

log = get_log(__name__)

DELAY_S: Final = 0.05
MOST_WAITING: Final = 10_000
"""Names beyond that are passed over: whoever asked asks again."""
AT_ONCE: Final = 20
"""So many the controller is asked for in one event, as with CreateTopics (broker/divisions.py)."""
REPORT_EVERY_S: Final = 10.0
_NAMES_IN_LOG: Final = 10

_Told: TypeAlias = dict[str, float]
"""Connections, by their peers, and when each was first told that a topic is unknown."""


class AutoCreation:
    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._wanted: dict[str, _Told] = {}
        self._new: dict[str, _Told] = {}
        """What is being created, or was a moment ago."""
        self._unreported = 0
        self._next_report = -math.inf

    def want(self, names: Iterable[str], peer: str) -> None:
        """Create these topics soon, with the broker's defaults; this connection is told that they are unknown. A name
        that may not be a topic's is passed over: its client has been told.
        """
        is_first = not self._wanted
        now = time.monotonic()
        for name in names:
            told = self._new.get(name, self._wanted.get(name))
            if told is None:
                if len(self._wanted) + len(self._new) >= MOST_WAITING:
                    break
                told = self._wanted[name] = {}
            if len(told) < MOST_WAITING:
                told.setdefault(peer, now)
        if is_first and self._wanted:
            self._broker.spawn(self._create(), name="creation of topics that were asked for")

    def is_hidden_from(self, peer: str, name: str) -> bool:
        """Whether this connection was told a moment ago that the topic is unknown, and it was created since."""
        told = self._new.get(name)
        return told is not None and time.monotonic() - told.get(peer, -math.inf) < DELAY_S

    async def _pause(self) -> None:
        await asyncio.sleep(DELAY_S)

    async def _create(self) -> None:
        await self._pause()
        wanted, self._wanted = self._wanted, {}
        topics = self._broker.image.topics
        new = {name: told for name, told in wanted.items() if name not in topics}
        if not new:
            return
        self._new |= new
        try:
            names = iter(new)
            while some := tuple(map(NewTopic, itertools.islice(names, AT_ONCE))):
                outcomes = await self._broker.controller.submit(CreateTopics(some))
                self._show(outcome.name for outcome in outcomes if outcome.outcome.error is not ErrorCode.NONE)
            await self._pause()
        except Refused as refusal:
            self._report(new, refusal)
        finally:
            self._show(new)

    def _report(self, names: Collection[str], refusal: Refused) -> None:
        """Not each time: while the metadata store is away, clients ask again and again."""
        self._unreported += len(names)
        now = time.monotonic()
        if now >= self._next_report:
            named = ",".join(itertools.islice(names, _NAMES_IN_LOG))
            log.warning("topics could not be created", count=self._unreported, topics=named, reason=refusal.message)
            self._unreported, self._next_report = 0, now + REPORT_EVERY_S

    def _show(self, names: Iterable[str]) -> None:
        for name in names:
            self._new.pop(name, None)
