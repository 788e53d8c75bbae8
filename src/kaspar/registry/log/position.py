"""The position up to which the log was read, and the interpretation of fetch responses. Pure.

The state is the replay of one log from its first record. It becomes void when the log is replaced: the topic was
deleted and recreated, the log was truncated below the position and continued differently, or records that are part of
the state were deleted at its start. Then the state is rebuilt from the current log; a mixture of both is never served.

Leader epochs distinguish two continuations of a log (KIP-320): every request has the epoch of the last batch read, and
the broker reports the offset at which its own log diverges.
"""

from collections.abc import Iterator
from enum import Enum, auto
from typing import Final
from uuid import UUID

from kaspar.base.error_codes import RETRIABLE
from kaspar.base.errors import ErrorCode, MalformedBytes
from kaspar.base.ids import NO_EPOCH
from kaspar.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from kaspar.records.batch import iter_headers
from kaspar.records.reader import iter_batch
from kaspar.records.record import Record
from kaspar.records.selection import BatchSelector, offset_behind

_READ_COMMITTED: Final = 1
_NO_SUCH_TOPIC: Final = frozenset(
    {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID}
)


class Finding(Enum):
    """The reason for a response without usable records."""

    NOTHING_NEW = auto()
    LEADER_MOVED = auto()
    """Look up the leader, and retry."""
    TOPIC_UNKNOWN = auto()
    """The topic may have been deleted or recreated: look it up."""


class LogReplaced(Exception):
    """The log is not the one that was read so far. The message says why."""


class FetchRefused(Exception):
    """The broker rejects fetches, for a reason that an operator must resolve."""


class LogPosition:
    def __init__(self, topic: str, topic_id: UUID, log_start_offset: int) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.offset = log_start_offset
        self.leader_epoch: int = NO_EPOCH
        self.log_start_offset = log_start_offset
        self._live: dict[bytes, int] = {}
        """The offset of the current record of each key that has a value. Nothing before the smallest is needed."""
        self._overlaid: set[bytes] = set()
        self._empty_responses = 0

    @property
    def overlaid(self) -> frozenset[bytes]:
        """Keys whose last record in the log belongs to an aborted transaction. A reader that ignores transactions, such
        as Confluent's registry, takes that record as valid."""
        return frozenset(self._overlaid)

    def offset_of(self, key: bytes) -> int | None:
        """The offset of the current record of the key; None if the key has no value."""
        return self._live.get(key)

    def request(self, *, max_wait_ms: int, max_bytes: int) -> FetchRequest:
        partition = FetchPartition(
            partition=0,
            fetch_offset=self.offset,
            last_fetched_epoch=self.leader_epoch,
            partition_max_bytes=max_bytes,
        )
        return FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=max_bytes,
            isolation_level=_READ_COMMITTED,
            topics=(FetchTopic(topic=self.topic, topic_id=self.topic_id, partitions=(partition,)),),
        )

    def judge(self, found: PartitionData) -> Finding | None:
        """Returns None if `found` has records for `batches`. Raises LogReplaced and FetchRefused."""
        code = found.error_code
        if code in _NO_SUCH_TOPIC:
            return Finding.TOPIC_UNKNOWN
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            raise LogReplaced(f"the log of {self.topic} no longer has offset {self.offset}, up to which it was read")
        if code in RETRIABLE:
            return Finding.LEADER_MOVED
        if code != ErrorCode.NONE:
            raise FetchRefused(f"reading {self.topic}: {ErrorCode(code).name}")
        if found.diverging_epoch.end_offset >= 0:
            raise LogReplaced(
                f"the log of {self.topic} was truncated to the offset {found.diverging_epoch.end_offset}; "
                f"it was read up to {self.offset}"
            )
        self._check_start(found.log_start_offset)
        if found.records:
            self._empty_responses = 0
            return None
        self._maybe_skip_gap(found.last_stable_offset)
        return Finding.NOTHING_NEW

    def _check_start(self, log_start_offset: int) -> None:
        """Compaction may also raise the log start offset, but then no current record is lost."""
        if log_start_offset <= self.log_start_offset:
            return
        if log_start_offset > min(self._live.values(), default=log_start_offset):
            raise LogReplaced(f"the records of {self.topic} before the offset {log_start_offset} were deleted")
        self.log_start_offset = log_start_offset

    def _maybe_skip_gap(self, last_stable_offset: int) -> None:
        """Skip to the last stable offset if compaction has removed all batches up to it. A response reports that offset
        as of before its records were read, so an empty response proves the gap. A second one in a row is required in
        case a broker reads in the opposite order."""
        if last_stable_offset <= self.offset:
            self._empty_responses = 0
            return
        self._empty_responses += 1
        if self._empty_responses >= 2:
            self.offset = last_stable_offset

    def batches(self, found: PartitionData) -> Iterator[tuple[Record, ...]]:
        """The visible records of each batch, in order: without control batches and aborted transactions. The position
        advances with every batch. Raises MalformedBytes."""
        records = memoryview(found.records or b"")
        aborted = [(each.producer_id, each.first_offset) for each in found.aborted_transactions or ()]
        selector = BatchSelector()
        selector.give(records, aborted)
        until = offset_behind(records)
        if until is None:
            raise MalformedBytes(f"{self.topic}: the response for offset {self.offset} has no whole batch")
        visible = selector.select(self.offset, until)
        for place, header in iter_headers(records, 0, len(records)):
            if header.next_offset <= self.offset:
                continue
            if visible is not None and selector.position == place:
                seen = tuple(each for each in iter_batch(records, place, header) if each.offset >= self.offset)
                self._count(seen)
                self.offset, self.leader_epoch = header.next_offset, header.leader_epoch
                yield seen
                visible = selector.select(self.offset, until)
            else:
                if not header.is_control:
                    self._overlaid.update(each.key for each in iter_batch(records, place, header) if each.key)
                self.offset, self.leader_epoch = header.next_offset, header.leader_epoch

    def _count(self, records: tuple[Record, ...]) -> None:
        for record in records:
            if record.key is None:
                continue
            self._overlaid.discard(record.key)
            if record.value is None:
                self._live.pop(record.key, None)
            else:
                self._live[record.key] = record.offset
