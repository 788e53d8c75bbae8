"""Notices that a broker's process has ended, long before its session expires. Run by the controller.

It holds a connection to every broker. When one breaks and nothing listens on the broker's port any more, the broker is
fenced at once (`FenceBrokers`).
"""

import asyncio
import contextlib
from typing import Final

from kaspar.base.errors import Refused
from kaspar.base.ids import BrokerId
from kaspar.base.log import get_log
from kaspar.broker.cluster.liveness import has_ended
from kaspar.controller.events import FenceBrokers
from kaspar.controller.shell import ControllerShell
from kaspar.metadata.image import AdvertisedEndpoint, BrokerRegistration
from kaspar.metadata.images import ImageUpdate

log = get_log(__name__)

CONNECT_WITHIN_S: Final = 5.0
BETWEEN_ATTEMPTS_S: Final = 0.2


class BrokerWatch:
    def __init__(self, controller: ControllerShell, me: BrokerId, listener: str) -> None:
        """`listener` is the name of the listener between brokers."""
        self._controller = controller
        self._me = me
        self._listener = listener
        self._watched: dict[BrokerId, tuple[int, asyncio.Task[None]]] = {}

    def follow(self, update: ImageUpdate) -> None:
        """Watch the brokers that are up. A follower of the controller."""
        brokers = update.image.brokers
        for broker_id, (epoch, task) in list(self._watched.items()):
            if broker_id not in brokers or brokers[broker_id].epoch != epoch:
                task.cancel()
                del self._watched[broker_id]
        for broker_id, broker in brokers.items():
            if broker_id != self._me and broker_id not in self._watched:
                task = asyncio.create_task(self._watch(broker), name=f"watch over broker {broker_id}")
                self._watched[broker_id] = broker.epoch, task

    async def stop(self) -> None:
        tasks = [task for _, task in self._watched.values()]
        self._watched.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _watch(self, broker: BrokerRegistration) -> None:
        endpoint = next((each for each in broker.endpoints if each.listener == self._listener), None)
        while endpoint is not None:
            with contextlib.suppress(OSError):
                await _until_disconnected(endpoint)
            if await has_ended(endpoint.host, endpoint.port):
                is_expected = broker.broker_id in self._controller.image.shutting_down
                report = log.info if is_expected else log.warning
                report("a broker's process has ended; fencing it", broker=broker.broker_id)
                with contextlib.suppress(Refused):  # not the controller any more, or retried below
                    await self._controller.submit(FenceBrokers(((broker.broker_id, broker.epoch),)))
            await asyncio.sleep(BETWEEN_ATTEMPTS_S)


async def _until_disconnected(endpoint: AdvertisedEndpoint) -> None:
    async with asyncio.timeout(CONNECT_WITHIN_S):
        reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port)
    try:
        while await reader.read(1024):
            pass
    finally:
        writer.transport.abort()
