"""Measures how long it takes to send a record and to read it back, one record at a time."""

import time
from types import TracebackType
from typing import Final, Self

from kaspar.base.ids import TopicPartition
from kaspar.client import Client
from kaspar.client.cluster import LATEST_TIMESTAMP
from kaspar.client.delivery_terms import DeliveryTerms
from kaspar.client.offsets import offsets_at
from kaspar.client.producing import RawProducer
from kaspar.records import Record, build_batch, iter_records
from kaspar.records.record import Header
from kaspar.tools.command_line import CommandFailed
from kaspar.tools.perf.fetching import Fetcher, FetchTerms

_TIMEOUT_S: Final = 60.0
_FETCH: Final = FetchTerms(max_wait_ms=500)


class RoundTrips:
    """The producer cycles through the partitions. The consumer reads all of them, starting at their ends."""

    def __init__(self, client: Client, topic: str, acks: int) -> None:
        self._producer = RawProducer(client, producer=None, terms=DeliveryTerms(acks=acks))
        count = self._producer.partitions_of(topic).count
        self._partitions = [TopicPartition(topic, number) for number in range(count)]
        self._sent = 0
        self._fetcher = Fetcher(client, _FETCH)
        self._fetcher.assign(offsets_at(client, self._partitions, LATEST_TIMESTAMP))

    def measure(self, key: bytes | None, value: bytes, headers: tuple[Header, ...]) -> float:
        """The duration in milliseconds. Raises CommandFailed if another record is read, or none."""
        partition = self._partitions[self._sent % len(self._partitions)]
        self._sent += 1
        begin_ns = time.perf_counter_ns()
        batch = build_batch([Record(time.time_ns() // 1_000_000, key, value, headers)])
        self._producer.send([(partition, memoryview(batch))])
        self._producer.flush()
        found = self._read()
        elapsed_ms = (time.perf_counter_ns() - begin_ns) / 1000 / 1000
        self._check(found, Record(0, key, value, headers))
        return elapsed_ms

    def _read(self) -> list[Record]:
        deadline_s = time.monotonic() + _TIMEOUT_S
        while time.monotonic() < deadline_s:
            found = [
                record._replace(timestamp=0, offset=-1)
                for fetched in self._fetcher.poll(deadline_s - time.monotonic())
                for record in iter_records(fetched.records)
                if record.offset >= fetched.position
            ]
            if found:
                return found
        raise CommandFailed(f"poll() timed out before finding a result (timeout:[{_TIMEOUT_S * 1000:.0f}ms])")

    @staticmethod
    def _check(found: list[Record], sent: Record) -> None:
        if len(found) != 1:
            raise CommandFailed(f"Only one result was expected during this test. We found [{len(found)}]")
        if found[0] != sent:
            read, written = (each.value.decode(errors="replace") if each.value else "" for each in (found[0], sent))
            raise CommandFailed(f"The message value read [{read}] did not match the message value sent [{written}]")

    def close(self) -> None:
        self._producer.close()
        self._fetcher.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
