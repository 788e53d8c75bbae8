"""What is in the logs in the end: every record with its producer, every marker, and so the fate of every record.

Read batch by batch, control batches included, with no help from a consumer's isolation level: whether a record is
committed is worked out here, from the markers behind it.
"""

import enum
import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from kaspar.client import Client
from kaspar.records import (
    BatchHeader,
    ControlType,
    Record,
    control_type,
    iter_batch,
    iter_headers,
)

OFFSETS_TOPIC = "__consumer_offsets"
_OFFSET_COMMIT_KEYS = (0, 1)
_FETCH_BYTES = 4 << 20


class Fate(enum.Enum):
    PLAIN = "not in a transaction"
    COMMITTED = "committed"
    ABORTED = "aborted"
    OPEN = "in a transaction that has not ended"


@dataclass(slots=True)
class LoggedRecord:
    """`settled_at`: the offset from which on its fate holds, its own or that of its marker; -1 while it is open."""

    offset: int
    key: bytes | None
    value: bytes | None
    producer_id: int
    producer_epoch: int
    fate: Fate
    settled_at: int

    @property
    def text(self) -> str:
        return "" if self.value is None else self.value.decode(errors="replace")

    @property
    def visible(self) -> bool:
        """To a read_committed reader."""
        return self.fate in (Fate.PLAIN, Fate.COMMITTED)


class Marker(NamedTuple):
    offset: int
    producer_id: int
    producer_epoch: int
    committed: bool


@dataclass(slots=True)
class PartitionLog:
    records: list[LoggedRecord] = field(default_factory=list)
    markers: list[Marker] = field(default_factory=list)
    end_offset: int = 0
    gaps: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, batches: Iterable[tuple[BatchHeader, list[Record]]]) -> "PartitionLog":
        log = cls()
        undecided: dict[int, list[LoggedRecord]] = defaultdict(list)
        for header, records in batches:
            if header.base_offset != log.end_offset:
                log.gaps.append(f"a batch begins at {header.base_offset}, where {log.end_offset} should be next")
            log.end_offset = header.next_offset
            for record in records:
                if header.is_control:
                    log._end_transaction(header, record, undecided)
                    continue
                fate = Fate.OPEN if header.is_transactional else Fate.PLAIN
                settled_at = -1 if header.is_transactional else record.offset
                logged = LoggedRecord(
                    record.offset,
                    record.key,
                    record.value,
                    header.producer_id,
                    header.producer_epoch,
                    fate,
                    settled_at,
                )
                log.records.append(logged)
                if header.is_transactional:
                    undecided[header.producer_id].append(logged)
        return log

    def _end_transaction(self, header: BatchHeader, record: Record, undecided: dict[int, list[LoggedRecord]]) -> None:
        kind = control_type(record)
        if kind not in (ControlType.COMMIT, ControlType.ABORT):
            return
        committed = kind is ControlType.COMMIT
        self.markers.append(Marker(record.offset, header.producer_id, header.producer_epoch, committed))
        for logged in undecided.pop(header.producer_id, ()):
            logged.fate = Fate.COMMITTED if committed else Fate.ABORTED
            logged.settled_at = record.offset

    @property
    def visible(self) -> list[LoggedRecord]:
        return [record for record in self.records if record.visible]


Logs = dict[tuple[str, int], PartitionLog]


class StoredCommit(NamedTuple):
    """A committed offset as `__consumer_offsets` has it; None where it was taken away."""

    group: str
    topic: str
    partition: int
    offset: int | None
    settled_at: int


def read_logs(client: Client, topics: Iterable[str]) -> Logs:
    """Everything up to the high watermark of every partition of these topics."""
    return {
        (topic.name, partition.partition_index): read_partition(client, topic.name, partition.partition_index)
        for topic in client.refresh_metadata(list(topics)).topics
        if topic.name is not None
        for partition in topic.partitions
    }


def read_partition(client: Client, topic: str, partition: int) -> PartitionLog:
    return PartitionLog.of(read_batches(client, topic, partition))


def read_batches(client: Client, topic: str, partition: int) -> Iterator[tuple[BatchHeader, list[Record]]]:
    """Up to the high watermark."""
    offset = 0
    while True:
        found = client.fetch(topic, partition, offset, max_bytes=_FETCH_BYTES, max_wait_ms=0)
        before = offset
        for position, header in iter_headers(found.records or b"", 0, len(found.records or b"")):
            if header.next_offset > offset:
                yield header, list(iter_batch(found.records or b"", position, header))
                offset = header.next_offset
        if offset >= found.high_watermark:
            return
        assert offset > before, f"nothing comes from {topic}-{partition} at {offset}, below {found.high_watermark}"


def stored_commits(logs: Logs) -> list[StoredCommit]:
    """Every commit that counts, in the order in which each partition of the offsets topic came to hold them."""
    found = []
    for (topic, _), log in sorted(logs.items()):
        if topic == OFFSETS_TOPIC:
            found += sorted(_commits(log), key=lambda commit: commit.settled_at)
    return found


def _commits(log: PartitionLog) -> Iterator[StoredCommit]:
    """By Kafka's layout, and not by the broker's own reader of it."""
    for record in log.visible:
        if record.key is None or int.from_bytes(record.key[:2]) not in _OFFSET_COMMIT_KEYS:
            continue
        group, position = read_string(record.key, 2)
        topic, position = read_string(record.key, position)
        (partition,) = struct.unpack_from(">i", record.key, position)
        offset = None if record.value is None else struct.unpack_from(">q", record.value, 2)[0]
        yield StoredCommit(group, topic, partition, offset, record.settled_at)


def read_string(data: bytes, position: int) -> tuple[str, int]:
    (size,) = struct.unpack_from(">h", data, position)
    end = position + 2 + size
    return data[position + 2 : end].decode(), end
