"""Reads the records of topics as a member of a group, and counts the records and the bytes of their keys and values."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from kaspar.base.ids import TopicPartition
from kaspar.client import Client
from kaspar.client.cluster import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from kaspar.client.group_member import GroupMember
from kaspar.client.offsets import commit_offsets, fetch_committed, offsets_at
from kaspar.records.column_reading import ColumnReader, Columns
from kaspar.tools.perf.fetching import FetchedRecords, Fetcher, FetchTerms

_NO_END: Final = 2**63 - 1
_AUTO_COMMIT_S: Final = 5.0
_POLL_S: Final = 0.1
_ROWS_AT_ONCE: Final = 16_384
_COLUMNS: Final = frozenset({"key", "value", "offset"})


@dataclass(frozen=True, slots=True)
class ConsumerOptions:
    group_id: str
    topics: Sequence[str]
    num_records: int
    timeout_ms: int
    """The longest time without records."""
    reset: Literal["earliest", "latest"] = "earliest"
    auto_commit: bool = True
    max_poll_records: int = 500
    """The last records are counted up to a multiple of this, as with a Java consumer."""
    terms: FetchTerms = field(default_factory=FetchTerms)


@dataclass(slots=True)
class Consumed:
    records: int = 0
    size: int = 0
    joining_ms: int = 0
    """The total time that it took to get partitions."""


class ConsumerLoad:
    """`on_records` is called whenever records have been counted."""

    def __init__(self, client: Client, options: ConsumerOptions, on_records: Callable[[Consumed], None]) -> None:
        self.consumed = Consumed()
        self._client = client
        self._options = options
        self._on_records = on_records
        self._member = GroupMember(client, options.group_id, options.topics)
        self._fetcher = Fetcher(client, options.terms)
        self._positions: dict[TopicPartition, int] = {}
        self._readers: dict[TopicPartition, ColumnReader] = {}
        self._joining_since_s: float | None = time.monotonic()
        self._commit_due_s = time.monotonic() + _AUTO_COMMIT_S

    def run(self) -> bool:
        """Returns whether all records were read, False meaning a timeout without records. Raises Refused and
        OSError.
        """
        last_s = time.monotonic()
        while self.consumed.records < self._options.num_records:
            if self._member.maybe_heartbeat():
                self._assigned()
            before = self.consumed.records
            for fetched in self._fetcher.poll(min(_POLL_S, self._member.due_in_s)):
                self._count(fetched)
            now_s = time.monotonic()
            if self.consumed.records > before:
                last_s = now_s
                self._on_records(self.consumed)
            elif now_s - last_s > self._options.timeout_ms / 1000:
                return False
            if now_s >= self._commit_due_s:
                self._commit()
                self._commit_due_s = now_s + _AUTO_COMMIT_S
        return True

    def close(self) -> None:
        self._fetcher.close()
        self._commit()
        self._member.leave()

    def _assigned(self) -> None:
        """Start reading the assigned partitions at the committed offset, or else at an end of the log."""
        self._commit()
        assigned = self._member.partitions
        if assigned and self._joining_since_s is not None:
            self.consumed.joining_ms += int((time.monotonic() - self._joining_since_s) * 1000)
            self._joining_since_s = None
        elif not assigned:
            self._joining_since_s = time.monotonic()
        positions = {where: self._positions[where] for where in assigned if where in self._positions}
        if missing := assigned - positions.keys():
            positions |= self._initial(missing)
        self._positions = positions
        self._readers.clear()
        self._fetcher.assign(positions)

    def _initial(self, partitions: frozenset[TopicPartition]) -> dict[TopicPartition, int]:
        committed = fetch_committed(self._client, self._options.group_id)
        found = {where: committed[where].offset for where in partitions if where in committed}
        timestamp = EARLIEST_TIMESTAMP if self._options.reset == "earliest" else LATEST_TIMESTAMP
        return found | offsets_at(self._client, partitions - found.keys(), timestamp)

    def _count(self, fetched: FetchedRecords) -> None:
        partition = fetched.partition
        reader = self._readers.get(partition)
        if reader is None:
            reader = ColumnReader(partition, _COLUMNS, fetched.position, _NO_END, max_rows=_ROWS_AT_ONCE)
            self._readers[partition] = reader
        for columns in reader.take(fetched.records, fetched.aborted):
            self._add(partition, columns)
        if (rest := reader.take_rest()) is not None:
            self._add(partition, rest)

    def _add(self, partition: TopicPartition, columns: Columns) -> None:
        most = self._options.max_poll_records
        left = self._options.num_records - self.consumed.records
        rows = min(columns.rows, (left + most - 1) // most * most)
        if rows <= 0:
            return
        self.consumed.records += rows
        self.consumed.size += columns.key.offsets.cast("i")[rows] + columns.value.offsets.cast("i")[rows]
        self._positions[partition] = columns.offset.cast("q")[rows - 1] + 1

    def _commit(self) -> None:
        if self._options.auto_commit and self._positions:
            member = self._member
            commit_offsets(
                self._client,
                self._options.group_id,
                self._positions,
                member_id=member.member_id,
                member_epoch=member.epoch,
            )
