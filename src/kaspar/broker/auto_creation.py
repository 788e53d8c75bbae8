"""Topics that clients bring about by asking for them (`auto.create.topics.enable`).

They are created a moment after the response that calls them unknown, as with Kafka, whose brokers send creations to a
controller elsewhere. Clients count on that moment: a reader of kafka-go that finds its topic unknown, and a round trip
later with all its partitions, waits for their number to change and never reads. Whoever is told "unknown" asks again
after 100 ms (librdkafka, the Java client, kafka-python), so the moment costs them nothing.

However many requests name a topic meanwhile, it is created once. One that somebody creates explicitly meanwhile is
left as it was made. When the broker stops, what is not created yet is not: its clients ask again.
"""

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import Refused
from kaspar.base.log import get_log
from kaspar.metadata.events import CreateTopics, NewTopic

if TYPE_CHECKING:
    from kaspar.broker.server import Broker

log = get_log(__name__)

DELAY_S: Final = 0.05
MOST_WAITING: Final = 10_000
"""Names beyond that are passed over: whoever asked asks again."""
_NAMES_IN_LOG: Final = 10


class AutoCreation:
    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._wanted: dict[str, None] = {}

    def want(self, names: Iterable[str]) -> None:
        """Create these topics soon, with the broker's defaults. A name that may not be a topic's is passed over: its
        client has been told.
        """
        is_first = not self._wanted
        for name in names:
            if len(self._wanted) >= MOST_WAITING:
                break
            self._wanted[name] = None
        if is_first and self._wanted:
            self._broker.spawn(self._create(), name="creation of topics that were asked for")

    async def _pause(self) -> None:
        await asyncio.sleep(DELAY_S)

    async def _create(self) -> None:
        await self._pause()
        names, self._wanted = self._wanted, {}
        topics = self._broker.image.topics
        wanted = tuple(NewTopic(name) for name in names if name not in topics)
        if not wanted:
            return
        try:
            await self._broker.controller.submit(CreateTopics(wanted))
        except Refused as refusal:
            named = ",".join(topic.name for topic in wanted[:_NAMES_IN_LOG])
            log.warning("topics could not be created", count=len(wanted), topics=named, reason=refusal.message)
