"""The records of one request in flight: counts delivery reports, which arrive in another thread.

The event loop adds records until it calls `wait`; the thread that polls librdkafka reports outcomes. Each side writes
its own counter and then reads the other's, so the later side sees that the batch is complete, and no lock is needed.
"""

import asyncio
import contextlib
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from kaspar.rest.errors import classify
from kaspar.rest.producing.outcomes import Delivered, Outcome, Undelivered

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

OnDelivery = Callable[["KafkaError | None", "Message"], None]


class Batch:
    def __init__(self, size: int, loop: asyncio.AbstractEventLoop) -> None:
        self.outcomes: list[Outcome | None] = [None] * size
        self._loop = loop
        self._complete: asyncio.Future[None] = loop.create_future()
        self._sent = 0
        self._sealed_at: int | None = None
        self._reported = 0

    def on_delivery(self, index: int) -> OnDelivery:
        """The callback for the record with this index. Call `sent` once librdkafka has accepted the record."""
        return partial(self._report, index)

    def sent(self) -> None:
        self._sent += 1

    def refuse(self, index: int, outcome: Undelivered) -> None:
        """Set the outcome of a record that librdkafka did not accept."""
        self.outcomes[index] = outcome

    async def wait(self) -> list[Outcome]:
        """Returns the outcomes once all records have been reported. No record may be sent after this call."""
        self._sealed_at = self._sent
        if self._reported != self._sent:
            await self._complete
        outcomes = [outcome for outcome in self.outcomes if outcome is not None]
        assert len(outcomes) == len(self.outcomes), "a record has neither been reported nor refused"
        return outcomes

    def _report(self, index: int, error: "KafkaError | None", message: "Message") -> None:
        """Called in the polling thread."""
        if error is None:
            partition, offset, (kind, timestamp) = message.partition(), message.offset(), message.timestamp()
            assert partition is not None
            # With acks=0 the offset is unknown; Java producers report -1 for it.
            known = -1 if offset is None or offset < 0 else offset
            self.outcomes[index] = Delivered(partition, known, timestamp if kind else None)
        else:
            self.outcomes[index] = Undelivered(*classify(error))
        self._reported += 1
        if self._reported == self._sealed_at:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nothing awaits the batch
                self._loop.call_soon_threadsafe(self._finish)

    def _finish(self) -> None:
        if not self._complete.done():
            self._complete.set_result(None)
