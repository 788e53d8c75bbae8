"""The records of a fetch response, with the outcomes of their transactions.

Unlike a consumer, the console also shows records of aborted and open transactions, and the markers that end them.
"""

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import NamedTuple

from kaspar.base.errors import MalformedBytes
from kaspar.base.ids import TopicPartition
from kaspar.records.batch import BatchHeader, crc_matches, iter_headers
from kaspar.records.control import ControlType, control_type
from kaspar.records.reader import iter_batch
from kaspar.records.record import Record


class State(Enum):
    COMMITTED = "committed"
    """The record's transaction was committed, or it has none."""
    ABORTED = "aborted"
    OPEN = "open"
    """The record's transaction has not ended, or an earlier one of the partition has not."""
    MARKER = "marker"
    DAMAGED = "damaged"
    """A placeholder for a batch that cannot be read, at its first offset."""


class StoredRecord(NamedTuple):
    """A record as it is stored in its partition."""

    where: TopicPartition
    record: Record
    is_log_append_time: bool
    state: State = State.COMMITTED
    producer_id: int = -1
    note: str = ""
    """For a marker, COMMIT or ABORT; for a damaged batch, what is wrong with it."""

    @property
    def offset(self) -> int:
        return self.record.offset

    @property
    def timestamp(self) -> int:
        return self.record.timestamp

    @property
    def size(self) -> int:
        """The bytes of its key, value and headers."""
        _, key, value, headers, _ = self.record
        return len(key or b"") + len(value or b"") + sum(len(name) + len(text or b"") for name, text in headers)


def stored_records(
    where: TopicPartition,
    batches: memoryview,
    aborted: Sequence[tuple[int, int]],
    *,
    start: int,
    until: int,
    last_stable_offset: int,
) -> Iterator[StoredRecord]:
    """The records from offset `start` to below `until`. `aborted` has the producer id and first offset of each aborted
    transaction of the response. Raises MalformedBytes only if the sizes of batches are invalid."""
    pending = sorted(aborted, key=lambda transaction: transaction[1])
    aborting: set[int] = set()
    first = 0
    for position, header in iter_headers(batches, 0, len(batches)):
        while first < len(pending) and pending[first][1] <= header.last_offset:
            aborting.add(pending[first][0])
            first += 1
        if header.base_offset >= until or (header.last_offset < start and not header.is_control):
            continue
        try:
            _check_crc(batches, position, header)
            if header.is_control:
                found = _markers(where, batches, position, header, aborting)
            else:
                found = _records(where, batches, position, header, _state(header, aborting, last_stable_offset))
            for each in found:
                if start <= each.record.offset < until:
                    yield each
        except MalformedBytes as problem:
            if header.base_offset >= start:
                yield _damaged(where, header, str(problem))


def _state(header: BatchHeader, aborting: set[int], last_stable_offset: int) -> State:
    if not header.is_transactional:
        return State.COMMITTED
    if header.base_offset >= last_stable_offset:
        return State.OPEN
    return State.ABORTED if header.producer_id in aborting else State.COMMITTED


def _records(
    where: TopicPartition, batches: memoryview, position: int, header: BatchHeader, state: State
) -> Iterator[StoredRecord]:
    is_log_append_time, producer_id = header.is_log_append_time, header.producer_id
    for record in iter_batch(batches, position, header):
        yield StoredRecord(where, record, is_log_append_time, state, producer_id)


def _markers(
    where: TopicPartition, batches: memoryview, position: int, header: BatchHeader, aborting: set[int]
) -> Iterator[StoredRecord]:
    """The record of a control batch, which has only one. An abort marker ends the transaction of its producer."""
    for record in iter_batch(batches, position, header):
        kind = control_type(record)
        if kind is ControlType.ABORT:
            aborting.discard(header.producer_id)
        yield StoredRecord(where, record, header.is_log_append_time, State.MARKER, header.producer_id, kind.name)


def _damaged(where: TopicPartition, header: BatchHeader, reason: str) -> StoredRecord:
    record = Record(header.max_timestamp, None, None, (), header.base_offset)
    sentence = f"The batch with offsets {header.base_offset} to {header.last_offset} cannot be read: {reason}."
    return StoredRecord(where, record, header.is_log_append_time, State.DAMAGED, header.producer_id, sentence)


def _check_crc(batches: memoryview, position: int, header: BatchHeader) -> None:
    if not crc_matches(batches, position, header):
        raise MalformedBytes("its CRC does not match")
