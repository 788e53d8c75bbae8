"""Replays records: writes them again, byte for byte, to their own topic, to another or, for dead letters, to the topic
of their origin.

Many dead letters are replayed in steps. A step reads between two cursors, so that it never reads what it has written,
and reports the cursor that it has reached; if a write fails, that is before the first record that was not written.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

import msgspec

from kaspar.base.errors import ErrorCode, Refused
from kaspar.client.cluster import Client
from kaspar.console.messages.dead_letters import origin_of, original_record
from kaspar.console.messages.reading.batches import State, StoredRecord
from kaspar.console.messages.reading.positions import AtOffset, Cursor, Direction, End
from kaspar.console.messages.reading.scanning import Budget, Matches, Page, Query, Stopped, read_page
from kaspar.console.messages.writing import RecordWriter, Written, size_of
from kaspar.console.problems import Conflict, NotThere, Unacceptable
from kaspar.records.record import Record

_STEP_RECORDS: Final = 500
_BATCH_BYTES: Final = 512 * 1024
_FAILURES: Final = (Refused, NotThere, Unacceptable, OSError)


class Replay(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The body of a request that replays one record. Without a topic, a dead letter is written to the topic of its
    origin, any other record to its own topic."""

    partition: int
    offset: int
    topic: str | None = None
    to_partition: int | None = None
    keep_timestamp: bool = False
    as_dead_letter: bool = False


@dataclass(frozen=True, slots=True)
class Destination:
    topic: str
    partition: int
    record: Record


@dataclass(frozen=True, slots=True)
class ReplayStep:
    replayed: int
    scanned: int
    position: Cursor
    """Where the next step continues."""
    is_done: bool
    problem: str | None = None
    """Why the step stopped at this position."""


def read_one(client: Client, topic: str, partition: int, offset: int) -> StoredRecord:
    """The record at this offset. Raises NotThere, Conflict and Refused."""
    query = Query(topic, AtOffset(offset), Direction.FORWARD, Budget(1), (partition,), with_markers=True)
    page = read_page(client, query)
    if problem := page.problems.get(partition):
        raise Conflict(f"Partition {partition} of {topic} cannot be read: {problem}.")
    if not page.records or page.records[0].offset != offset:
        raise NotThere(
            f"Partition {partition} of {topic} has no record at offset {offset}: it was deleted or never existed."
        )
    return page.records[0]


def replay_one(client: Client, topic: str, replay: Replay) -> tuple[str, Written]:
    """Replay one record. Returns the topic that it was written to, and its position there. Blocks. Raises Unacceptable,
    NotThere, Conflict and Refused."""
    stored = read_one(client, topic, replay.partition, replay.offset)
    if stored.state in (State.MARKER, State.DAMAGED):
        raise Unacceptable(f"Offset {replay.offset} is not a record but a {stored.state.value} batch.")
    writer = RecordWriter(client)
    if replay.as_dead_letter:
        to = _destination_of_letter(writer, stored, keep_timestamp=replay.keep_timestamp, topic=replay.topic)
    else:
        target = replay.topic or topic
        record = stored.record
        timestamp = record.timestamp if replay.keep_timestamp else writer.now_ms()
        partition = writer.partition_of(target, record.key, replay.to_partition)
        to = Destination(target, partition, record._replace(timestamp=timestamp))
    return to.topic, writer.write(to.topic, to.partition, [to.record])


def letters_that(matches: Matches | None) -> Matches:
    """A filter for dead letters that match and are not of an aborted transaction."""

    def is_letter(stored: StoredRecord) -> bool:
        return (
            stored.state in (State.COMMITTED, State.OPEN)
            and origin_of(stored.record.headers) is not None
            and (matches is None or matches(stored))
        )

    return is_letter


@dataclass(frozen=True, slots=True)
class LetterCount:
    found: int
    scanned: int
    start: Cursor
    position: Cursor
    """Where counting continues."""
    until: Cursor
    """The end of the topic when counting began: later records are not replayed."""
    is_done: bool


def count_letters(
    client: Client, topic: str, start: Cursor | None, until: Cursor | None, matches: Matches | None
) -> LetterCount:
    """Count in one step; without `start`, from the oldest record on. Blocks. Raises NotThere and Refused."""
    is_letter = letters_that(matches)
    found = 0

    def count(stored: StoredRecord) -> bool:
        nonlocal found
        found += is_letter(stored)
        return False  # keep no record

    query = Query(topic, start or End.OLDEST, Direction.FORWARD, Budget(1), is_committed=True, until=until)
    page = read_page(client, query, count)
    ends = until or Cursor({partition: bounds.end for partition, bounds in page.bounds.items()})
    return LetterCount(found, page.scanned, page.low, page.high, ends, page.stopped is Stopped.END)


def replay_letters(
    client: Client,
    topic: str,
    start: Cursor,
    until: Cursor,
    matches: Matches | None,
    *,
    keep_timestamp: bool,
) -> ReplayStep:
    """Replay one step. Blocks. Raises NotThere and Refused if nothing could be read."""

    query = Query(topic, start, Direction.FORWARD, Budget(_STEP_RECORDS), is_committed=True, until=until)
    page = read_page(client, query, letters_that(matches))
    written, problem = _write_letters(client, page.records, keep_timestamp=keep_timestamp)
    position = _reached(page, written)
    return ReplayStep(written, page.scanned, position, page.stopped is Stopped.END and problem is None, problem)


def _write_letters(client: Client, letters: Sequence[StoredRecord], *, keep_timestamp: bool) -> tuple[int, str | None]:
    """Write dead letters in their order. Returns how many were written, and why not all of them."""
    if not letters:
        return 0, None
    written, problem = 0, None
    destinations: list[Destination] = []
    try:
        writer = RecordWriter(client)
        destinations.extend(_destination_of_letter(writer, each, keep_timestamp=keep_timestamp) for each in letters)
    except _FAILURES as failure:
        problem = str(failure)  # those before the failure are still written
    try:
        for batch in _batches(destinations):
            for count in _write_batch(writer, batch):
                written += count
    except _FAILURES as failure:
        problem = str(failure)
    return written, problem


def _write_batch(writer: RecordWriter, batch: Sequence[Destination]) -> Iterator[int]:
    """Write a batch; yields the number of records written after each write. A batch that is too large for the topic is
    split, as in Java's producer, because each of its records may fit."""
    try:
        writer.write(batch[0].topic, batch[0].partition, [to.record for to in batch])
    except Refused as refused:
        if refused.code is not ErrorCode.MESSAGE_TOO_LARGE or len(batch) == 1:
            raise
        middle = len(batch) // 2
        yield from _write_batch(writer, batch[:middle])
        yield from _write_batch(writer, batch[middle:])
    else:
        yield len(batch)


def _batches(destinations: Sequence[Destination]) -> Iterator[list[Destination]]:
    """Consecutive records of one partition, in batches of limited size."""
    for _, following in groupby(destinations, key=lambda to: (to.topic, to.partition)):
        batch: list[Destination] = []
        size = 0
        for to in following:
            batch.append(to)
            size += size_of(to.record)
            if size >= _BATCH_BYTES:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch


def _reached(page: Page, written: int) -> Cursor:
    """The end of the page, or for each partition with unwritten records, the first of them."""
    offsets = dict(page.high.offsets)
    for stored in reversed(page.records[written:]):
        offsets[stored.where.partition] = stored.offset
    return Cursor(offsets)


def _destination_of_letter(
    writer: RecordWriter, stored: StoredRecord, *, keep_timestamp: bool, topic: str | None = None
) -> Destination:
    """Where to write a dead letter: to the partition of origin, if it still exists."""
    origin = origin_of(stored.record.headers)
    if origin is None:
        raise Unacceptable(f"The record at offset {stored.offset} is not a dead letter.")
    target = topic or origin.topic
    if target == stored.where.topic:
        raise Unacceptable(f"The dead letter at offset {stored.offset} comes from {target} itself.")
    record = original_record(stored.record, now_ms=writer.now_ms(), keep_timestamp=keep_timestamp)
    wanted = origin.partition if target == origin.topic else None
    try:
        partition = writer.partition_of(target, record.key, wanted)
    except NotThere:
        partition = writer.partition_of(target, record.key)
    return Destination(target, partition, record)
