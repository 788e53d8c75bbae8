"""The producer that requests share: how it hands records to librdkafka, and lets other requests have their turn."""

import asyncio
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from kaspar.rest.producing import OutgoingRecord
from kaspar.rest.producing.producer import _AT_ONCE, SharedProducer


class Librdkafka:
    """Accepts records while there is room, and reports none."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.accepted = 0

    def produce(self, *record: Any) -> None:
        if self.accepted >= self.room:
            raise BufferError
        self.accepted += 1

    def poll(self, timeout_s: float) -> int:
        return 0

    def purge(self) -> None: ...

    def __len__(self) -> int:
        return 0


class Clients:
    max_block_s = 60.0

    def __init__(self, librdkafka: Librdkafka) -> None:
        self._librdkafka = librdkafka

    def new_producer(self, identity: Any, on_error: Callable[..., None]) -> tuple[Librdkafka, int]:
        return self._librdkafka, 1_000_000


def test_request_that_waited_for_room_does_not_keep_others_waiting() -> None:
    """However much room there is at once."""
    records = [OutgoingRecord(None, b"x")] * (20 * _AT_ONCE)

    async def scenario() -> list[int]:
        librdkafka = Librdkafka(room=0)
        clients: Any = Clients(librdkafka)
        identity: Any = None
        producer = SharedProducer(clients, identity, max_waiting=10)
        submitted = asyncio.create_task(producer.submit("orders", records))
        await asyncio.sleep(0)
        librdkafka.room = len(records)
        producer._room.set()
        seen = [0]
        while not submitted.done():
            await asyncio.sleep(0)
            seen.append(librdkafka.accepted)
        await producer.close(1.0)
        return seen

    seen = asyncio.run(scenario())
    assert seen[-1] == len(records)
    assert max(later - earlier for earlier, later in pairwise(seen)) <= _AT_ONCE
