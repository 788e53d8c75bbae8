"""A librdkafka producer that many requests share.

A thread polls it, and delivery reports complete the requests that wait for them. librdkafka's buffer is bounded
(`buffer.memory`). While it is full, requests wait in the order of their arrival, each for at most `max.block.ms`. The
number of waiting requests is bounded: a further one is rejected as a whole. So an unavailable broker costs bounded
memory.
"""

import asyncio
import contextlib
import re
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kaspar.base.log import get_log
from kaspar.rest.errors import KAFKA_RETRIABLE, TOO_MANY_REQUESTS, RestError, classify
from kaspar.rest.producing.batch import Batch
from kaspar.rest.producing.outcomes import Outcome, OutgoingRecord, Undelivered

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Producer

    from kaspar.callers.clients import KafkaClients
    from kaspar.callers.identities import Identity

log = get_log(__name__)

_POLL_S: Final = 0.2
_REPORTED_FOR_S: Final = 60.0
_AFTER: Final = re.compile(r" \(after \d+ms.*", re.DOTALL)
"""The part of a message that differs between reports of the same problem."""
_REFRESH_S: Final = 10.0
_AT_ONCE: Final = 500
"""The number of records that are passed to librdkafka before other requests get a turn."""
_OVERHEAD: Final = 82
"""The maximum overhead of a batch with one record: the batch header, and the lengths in the record."""


class SharedProducer:
    """Must be used from one event loop."""

    def __init__(self, clients: "KafkaClients", identity: "Identity", *, max_waiting: int) -> None:
        from confluent_kafka import KafkaException

        self._kafka_exception = KafkaException
        self._loop = asyncio.get_running_loop()
        self._max_block_s = clients.max_block_s
        self._max_waiting = max_waiting
        self._waiting = 0
        self._turn = asyncio.Lock()
        self._room = asyncio.Event()
        self._is_closing = False
        self.is_broken = False
        """Set by a fatal error: no record is accepted any more, and the producer must be replaced."""
        self._producer: Producer
        self._producer, self._largest = clients.new_producer(identity, self._on_error)
        self._reported: set[str] = set()
        self._reported_until = 0.0
        self._ending = threading.Lock()
        self._is_polled = False
        self._thread: threading.Thread
        self._keep_polled()

    async def submit(self, topic: str, records: Sequence[OutgoingRecord]) -> Batch:
        """Returns once librdkafka has accepted the records; `Batch.wait` returns their outcomes, in the same order.
        Records of one partition are written in the order in which they are submitted. Raises RestError (429), with
        nothing written, if too many requests are waiting already."""
        batch = Batch(len(records), self._loop)
        done = 0
        while not self._waiting and done < len(records):  # a waiting request must not be overtaken
            end = min(done + _AT_ONCE, len(records))
            done = self._send(batch, topic, records, done, end)
            if done < end:
                break
            if done < len(records):
                await asyncio.sleep(0)
        if done < len(records):
            await self._send_rest(batch, topic, records, done)
        if self._is_closing:  # the producer was retired meanwhile
            self._keep_polled()
        return batch

    async def produce(self, topic: str, records: Sequence[OutgoingRecord]) -> list[Outcome]:
        """Submit the records and wait for their outcomes."""
        return await (await self.submit(topic, records)).wait()

    async def refresh(self, topic: str) -> None:
        """Request the topic's partitions from brokers now. Errors are ignored: producing reports them as well."""
        with contextlib.suppress(self._kafka_exception):
            await asyncio.to_thread(self._producer.list_topics, topic, _REFRESH_S)

    def _send(self, batch: Batch, topic: str, records: Sequence[OutgoingRecord], start: int, end: int) -> int:
        """Returns the index of the first record for which the buffer has no space."""
        produce = self._producer.produce
        for index in range(start, end):
            key, value, partition, timestamp_ms, headers = records[index]
            try:
                if headers:
                    produce(topic, value, key, partition, batch.on_delivery(index), None, timestamp_ms, list(headers))
                else:
                    produce(topic, value, key, partition, batch.on_delivery(index), None, timestamp_ms)
            except BufferError:
                return index
            except self._kafka_exception as problem:
                batch.refuse(index, self._refusal(problem.args[0], records[index]))
            else:
                batch.sent()
        return end

    async def _send_rest(self, batch: Batch, topic: str, records: Sequence[OutgoingRecord], done: int) -> None:
        """Send the records as deliveries free space in the buffer. Records that find no space in time are rejected."""
        if not done and self._waiting >= self._max_waiting:
            raise RestError(TOO_MANY_REQUESTS, "Too many requests are waiting for space in the producer's buffer.")
        self._waiting += 1
        try:
            async with asyncio.timeout(self._max_block_s), self._turn:
                while done < len(records):
                    self._room.clear()
                    end = min(done + _AT_ONCE, len(records))
                    done = self._send(batch, topic, records, done, end)
                    await (self._room.wait() if done < end else asyncio.sleep(0))
        except TimeoutError:
            sentence = (
                "Failed to allocate memory within the configured max blocking time "
                f"{round(self._max_block_s * 1000)} ms."
            )
            for index in range(done, len(records)):
                batch.refuse(index, Undelivered(KAFKA_RETRIABLE, sentence))
        finally:
            self._waiting -= 1

    def _refusal(self, error: "KafkaError", record: OutgoingRecord) -> Undelivered:
        kind, message = classify(error)
        if error.code() == error.MSG_SIZE_TOO_LARGE:
            headers = sum(len(name) + len(value or b"") for name, value in record.headers or ())
            size = len(record.key or b"") + len(record.value or b"") + headers + _OVERHEAD
            message = (
                f"The message is {size} bytes when serialized which is larger than {self._largest}, "
                "which is the value of the max.request.size configuration."
            )
        return Undelivered(kind, message)

    def _on_error(self, error: "KafkaError") -> None:
        """Called in the polling thread."""
        if error.fatal():
            self.is_broken = True
            log.error("a producer failed fatally and is being replaced", reason=error.str())
        elif self._is_news(reason := _AFTER.sub("", error.str())):
            log.warning("a producer reported an error", reason=reason)

    def _is_news(self, reason: str) -> bool:
        """Whether the error has not been logged recently: librdkafka reports every connection attempt."""
        now = time.monotonic()
        if now > self._reported_until:
            self._reported.clear()
            self._reported_until = now + _REPORTED_FOR_S
        is_news = reason not in self._reported
        self._reported.add(reason)
        return is_news

    def _keep_polled(self) -> None:
        """Start the thread unless it is running. It may have just decided to end."""
        with self._ending:
            if not self._is_polled:
                self._is_polled = True
                self._thread = threading.Thread(target=self._poll, name="rest-producer", daemon=True)
                self._thread.start()

    def _poll(self) -> None:
        while True:
            with self._ending:
                if self._is_closing and len(self._producer) == 0:
                    self._is_polled = False
                    return
            try:
                served = self._producer.poll(_POLL_S)
            except Exception:  # raised by a callback: the other requests still need their reports
                log.exception("a delivery report could not be handled")
                continue
            if served and self._waiting:
                with contextlib.suppress(RuntimeError):  # the loop is closed: nothing waits for space
                    self._loop.call_soon_threadsafe(self._room.set)

    def retire(self) -> None:
        """Let the polling thread end once all records are delivered or have timed out."""
        self._is_closing = True

    async def close(self, timeout_s: float) -> None:
        """Records that are not delivered within the timeout are purged: their requests end with errors."""
        self.retire()
        await asyncio.to_thread(self._thread.join, timeout_s)
        if self._thread.is_alive():
            self._producer.purge()
            await asyncio.to_thread(self._thread.join, timeout_s)
