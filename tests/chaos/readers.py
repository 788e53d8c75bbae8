"""Readers of committed records that go on while the broker beneath them is killed and started again.

`StockReader` is librdkafka's; `RawReader` takes raw batches and the aborted ranges that the broker names, and leaves
out by its own rules what is not committed. Both note every record that they were given.
"""

import heapq
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType

from confluent_kafka import Consumer, Message, TopicPartition

from kaspar.base.errors import Refused
from kaspar.client import Client
from kaspar.protocol.isolation_level import READ_COMMITTED
from kaspar.protocol.messages.fetch import PartitionData
from kaspar.records import ControlType, Record, control_type, iter_batch, iter_headers
from kaspar.security.client import ClientSecurity
from tests.chaos.actors.launch import IMPATIENT
from tests.chaos.history import Journal, Read
from tests.peers.background import Background

_MOST_MESSAGES = 500


class _Reader(Background):
    """A thread that notes in a journal what `_read` finds, until the block ends."""

    def __init__(
        self,
        name: str,
        journals: Path,
        bootstrap: str,
        topic: str,
        partitions: int,
        *,
        client: Mapping[str, str | int] | None = None,
        security: ClientSecurity | None = None,
        leaders_change: bool = False,
    ) -> None:
        """`client`: more settings of a stock client; `security`: of a raw one. `leaders_change`: a new leader knows the
        high watermark, and the last stable offset, a moment later."""
        super().__init__()
        self.problems: list[str] = []
        self.count = 0
        self.positions: dict[int, int] = {}  # by partition: behind the last record that was noted
        self._journal = Journal(journals, name)
        self._bootstrap = bootstrap
        self._topic = topic
        self._partitions = partitions
        self._client = dict(client or {})
        self._security = security
        self._leaders_change = leaders_change

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, traceback)
        self._journal.close()

    def _work(self) -> None:
        try:
            self._read()
        except BaseException as problem:
            self.problems.append(f"{self._journal.actor}: {problem!r}")
            raise

    def _read(self) -> None:
        raise NotImplementedError

    def _note(self, *records: tuple[int, int, bytes]) -> None:
        """Partition, offset and value of each."""
        if records:
            actor = self._journal.actor
            self._journal.note(
                *(
                    Read(actor=actor, topic=self._topic, partition=partition, offset=offset, value=value.decode())
                    for partition, offset, value in records
                )
            )
            self.positions |= {partition: offset + 1 for partition, offset, _ in records}
            self.count += len(records)


class StockReader(_Reader):
    isolation_level = "read_committed"

    def _read(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                **IMPATIENT,
                "group.id": "unused: partitions are assigned by hand",
                "isolation.level": self.isolation_level,
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 20,
                **self._client,
            }
        )
        consumer.assign([TopicPartition(self._topic, partition, 0) for partition in range(self._partitions)])
        try:
            while not self._stop.is_set():
                messages = consumer.consume(_MOST_MESSAGES, timeout=0.05)
                self._note(*(_record_of(message) for message in messages if message.error() is None))
        finally:
            consumer.close()


class UncommittedReader(StockReader):
    """One that is not to be trusted: a checker must find that it saw what it should not have."""

    isolation_level = "read_uncommitted"


def _record_of(message: Message) -> tuple[int, int, bytes]:
    partition, offset, value = message.partition(), message.offset(), message.value()
    assert partition is not None
    assert offset is not None
    assert isinstance(value, bytes)
    return partition, offset, value


class RawReader(_Reader):
    def _read(self) -> None:
        positions = dict.fromkeys(range(self._partitions), 0)
        stable = dict.fromkeys(range(self._partitions), 0)
        while not self._stop.is_set():
            try:
                with Client(self._bootstrap, timeout_s=2, security=self._security) as client:
                    while not self._stop.is_set():
                        for partition, position in positions.items():
                            found = client.fetch(
                                self._topic, partition, position, max_wait_ms=5, isolation_level=READ_COMMITTED
                            )
                            self._watch(partition, found, stable)
                            given, positions[partition] = committed_records(found, position)
                            self._note(
                                *(
                                    (partition, record.offset, record.value)
                                    for record in given
                                    if record.value is not None
                                )
                            )
            except (OSError, Refused):
                self._stop.wait(0.01)  # the broker is down just now

    def _watch(self, partition: int, found: PartitionData, stable: dict[int, int]) -> None:
        """The last stable offset never goes back at the same leader, and never passes the high watermark."""
        before = 0 if self._leaders_change else stable[partition]
        if not before <= found.last_stable_offset <= found.high_watermark:
            self.problems.append(
                f"{self._topic}-{partition}: the last stable offset was {before} and is "
                f"{found.last_stable_offset}, with the high watermark at {found.high_watermark}"
            )
        stable[partition] = found.last_stable_offset


def committed_records(found: PartitionData, position: int) -> tuple[list[Record], int]:
    """What a read_committed consumer hands on from such a response, and where it reads on.

    The response reaches at most to the last stable offset, and names the aborted transactions in it by their first
    offset.
    """
    aborted = [(each.first_offset, each.producer_id) for each in found.aborted_transactions or ()]
    heapq.heapify(aborted)
    aborting: set[int] = set()
    given: list[Record] = []
    data = found.records or b""
    for place, header in iter_headers(data, 0, len(data)):
        while aborted and aborted[0][0] <= header.last_offset:
            aborting.add(heapq.heappop(aborted)[1])
        records = iter_batch(data, place, header)
        if header.is_control:
            _end(aborting, header.producer_id, records)
        elif not (header.is_transactional and header.producer_id in aborting):
            given += [record for record in records if record.offset >= position]
        position = max(position, header.next_offset)
    return given, position


def _end(aborting: set[int], producer_id: int, records: Iterator[Record]) -> None:
    for record in records:
        if control_type(record) is ControlType.ABORT:
            aborting.discard(producer_id)
