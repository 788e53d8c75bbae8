"""Brokers that were lost a moment ago, for clients that request metadata at that time.

A client notices a dead leader at the same time as the other brokers, and requests metadata at once, usually some
milliseconds before the next leader is elected. How long librdkafka's partitions stall depends on the response:
- If it names the same leader again, librdkafka retries when a timer fires, up to a second later. So a request that
  names topics waits, briefly, while the process of one of their leaders is known to have ended.
- If it no longer lists the dead broker, librdkafka removes that broker together with its partitions, which then wait
  for the same timer, although the response has their new leader. So the dead broker is listed for a while longer. Kafka
  lists a dead broker too, until its session ends.
"""

import asyncio
import contextlib
from collections.abc import Collection
from typing import Final

from kaspar.base.ids import BrokerId
from kaspar.broker.cluster.liveness import has_ended
from kaspar.broker.services import Tasks
from kaspar.metadata.image import BrokerRegistration
from kaspar.metadata.images import ImageChange, ImageSource

FENCED_WITHIN_S: Final = 0.5
"""A broker whose process has ended is fenced within milliseconds. No request waits for it longer than this."""
LISTED_FOR_S: Final = 5.0


class LostBrokers:
    """Owned by the event loop."""

    def __init__(self, images: ImageSource, tasks: Tasks) -> None:
        self._images = images
        self._tasks = tasks
        self._suspected: dict[BrokerId, float] = {}
        """Until when requests wait for each of them."""
        self._departed: dict[BrokerId, tuple[BrokerRegistration, float]] = {}
        """Until when each of them is listed."""
        self._changed = asyncio.Event()

    def connection_lost(self, broker_id: BrokerId) -> None:
        """Suspect this broker, whose connection has broken, until a check shows that its process has not ended."""
        registration = self._images.current.brokers.get(broker_id)
        if registration is not None and broker_id not in self._suspected:
            self._suspected[broker_id] = _now() + FENCED_WITHIN_S
            self._tasks.spawn(self._verify(registration), name=f"has broker {broker_id} ended?")

    async def _verify(self, registration: BrokerRegistration) -> None:
        addresses = [(endpoint.host, endpoint.port) for endpoint in registration.endpoints]
        if not all([await has_ended(*address) for address in addresses]):
            self._suspected.pop(registration.broker_id, None)
            self._wake()

    def note_departed(self, change: ImageChange) -> None:
        """List the brokers that are missing from the new image for a while. Called before the slow listeners of the
        image, as the new image is already current.
        """
        old, new = change.old.brokers, change.new.brokers
        if old is not new:
            until = _now() + LISTED_FOR_S
            self._departed = {each: kept for each, kept in self._departed.items() if each not in new}
            self._departed.update({each: (broker, until) for each, broker in old.items() if each not in new})

    def image_changed(self, change: ImageChange) -> None:
        """Stop waiting for brokers that were replaced. Called after the other listeners, when this broker has applied
        the image and leads the partitions that the image assigns to it.
        """
        old, new = change.old.brokers, change.new.brokers
        if old is new:
            return
        self._suspected = {
            each: waits
            for each, waits in self._suspected.items()
            if each in new and each in old and new[each].epoch == old[each].epoch
        }
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    @property
    def are_suspected(self) -> bool:
        """Whether any broker is suspected."""
        return bool(self._suspected)

    def are_among(self, leaders: Collection[BrokerId]) -> bool:
        """Whether one of these leaders is about to be replaced."""
        return self._waits_until(leaders) > _now()

    async def replaced(self, leaders: Collection[BrokerId]) -> None:
        """Wait until none of these leaders is about to be replaced."""
        while (until := self._waits_until(leaders)) > _now():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(until):
                    await self._changed.wait()

    def _waits_until(self, leaders: Collection[BrokerId]) -> float:
        return max((self._suspected.get(leader, 0.0) for leader in leaders), default=0.0)

    def departed(self) -> list[BrokerRegistration]:
        """The brokers that were lost less than LISTED_FOR_S ago."""
        if not self._departed:
            return []
        now = _now()
        self._departed = {each: kept for each, kept in self._departed.items() if kept[1] > now}
        return [broker for broker, _ in self._departed.values()]


def _now() -> float:
    return asyncio.get_running_loop().time()
