"""Prints the sparse indexes of a segment, or checks them: their own consistency, and against the segment's log."""

import os
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from kaspar.base.errors import MalformedBytes
from kaspar.records import iter_batch
from kaspar.tools.dump_log.batches import iter_batches, opened
from kaspar.tools.dump_log.errors import CannotDump
from kaspar.tools.dump_log.log_file import NO_LIMIT, base_offset_of

_OFFSET_ENTRY: Final = struct.Struct(">ii")
_TIME_ENTRY: Final = struct.Struct(">qi")
_NO_TIMESTAMP: Final = -1
_WARM_ENTRIES: Final = 8192 // _OFFSET_ENTRY.size  # Kafka searches the end of an index first

Write = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class IndexOptions:
    sanity_check: bool
    verify_only: bool
    max_message_size: int


@dataclass(slots=True)
class TimeIndexProblems:
    """The problems of one file: pairs of the value in the index and the value in the log."""

    mismatches: list[tuple[int, int]] = field(default_factory=list)
    out_of_order: list[tuple[int, int]] = field(default_factory=list)
    not_found: list[tuple[int, int]] = field(default_factory=list)


def dump_offset_index(path: str, name: str, options: IndexOptions, write: Write) -> dict[int, int]:
    """Returns the entries whose offset is not the last one of their batch: the entry's offset, and the batch's."""
    base_offset = base_offset_of(name)
    mismatches: dict[int, int] = {}
    log_path = _beside(path, name, ".log")
    with opened(log_path) as log, _entries(path, _OFFSET_ENTRY) as (entries, size):
        if not entries:
            write(f"{path} is empty.\n")
            return mismatches
        if options.sanity_check:
            last_offset = base_offset + entries[-1][0]
            _check_last_offset(path, last_offset, base_offset)
            _check_size("Index", path, size, _OFFSET_ENTRY.size)
            write(f"{path} passed sanity check.\n")
            return mismatches
        for number, (relative_offset, position) in enumerate(entries):
            if relative_offset == 0 and number > 0:  # an index that was not closed ends with zeros
                break
            offset = base_offset + relative_offset
            found = _last_offset_at(log, log_path, position, options.max_message_size)
            if found != offset:
                mismatches[offset] = found
            if not options.verify_only:
                write(f"offset: {offset} position: {position}\n")
    return mismatches


def dump_time_index(path: str, name: str, options: IndexOptions, write: Write) -> TimeIndexProblems:
    base_offset = base_offset_of(name)
    problems = TimeIndexProblems()
    log_path, index_path = _beside(path, name, ".log"), _beside(path, name, ".index")
    with (
        opened(log_path) as log,
        _entries(index_path, _OFFSET_ENTRY) as (offset_entries, _),
        _entries(path, _TIME_ENTRY) as (entries, size),
    ):
        if options.sanity_check:
            _check_time_index(path, entries, base_offset)
            _check_size("Time index", path, size, _TIME_ENTRY.size)
            write(f"{path} passed sanity check.\n")
            return problems
        positions = _Positions(offset_entries)
        previous = _NO_TIMESTAMP
        for number, (timestamp, relative_offset) in enumerate(entries):
            if relative_offset == 0 and number > 0:
                break
            offset = base_offset + relative_offset
            found, max_timestamp = _batch_with(log, log_path, positions.lookup(relative_offset), offset)
            if found != offset:
                problems.not_found.append((offset, found))
            else:
                if max_timestamp != timestamp:
                    problems.mismatches.append((timestamp, max_timestamp))
                if previous >= timestamp:
                    problems.out_of_order.append((timestamp, previous))
            if not options.verify_only:
                write(f"timestamp: {timestamp} offset: {offset}\n")
            previous = timestamp
    return problems


class _Positions:
    """The position at which a lookup in an offset index starts reading the log. Takes the same steps as Kafka, so that
    a damaged index leads to the same batches.
    """

    def __init__(self, entries: list[tuple[int, int]]) -> None:
        self._entries = entries

    def lookup(self, relative_offset: int) -> int:
        slot = self._slot(relative_offset)
        return self._entries[slot][1] if slot >= 0 else 0

    def _slot(self, relative_offset: int) -> int:
        """The last entry at or below the offset, or -1 if all are above it."""
        if not self._entries:
            return -1
        last = len(self._entries) - 1
        first_warm = max(0, last - _WARM_ENTRIES)
        if self._entries[first_warm][0] < relative_offset:
            return self._search(relative_offset, first_warm, last)
        if self._entries[0][0] > relative_offset:
            return -1
        return self._search(relative_offset, 0, first_warm)

    def _search(self, relative_offset: int, low: int, high: int) -> int:
        while low < high:
            middle = (low + high + 1) // 2
            found = self._entries[middle][0]
            if found == relative_offset:
                return middle
            if found > relative_offset:
                high = middle - 1
            else:
                low = middle
        return low


@contextmanager
def _entries(path: str, layout: struct.Struct) -> Iterator[tuple[list[tuple[int, int]], int]]:
    """The complete entries of an index, and the size of the file."""
    with opened(path) as data:
        whole = len(data) // layout.size * layout.size
        yield list(layout.iter_unpack(data[:whole])), len(data)


def _beside(path: str, name: str, suffix: str) -> str:
    return os.path.join(os.path.dirname(os.path.abspath(path)), name.split(".")[0] + suffix)


def _last_offset_at(log: memoryview, path: str, position: int, max_bytes: int) -> int:
    if position < 0:
        raise CannotDump(f"Invalid position: {position} in read from FileRecords(size={len(log)}, file={path})")
    if position > len(log):
        raise CannotDump(f"Slice from position {position} exceeds end position of {path}, {len(log)}")
    for _, header in iter_batches(log, position, min(len(log), position + max_bytes), path):
        return header.last_offset
    raise CannotDump(f"There is no whole batch within {max_bytes} bytes from position {position} of {path}")


def _batch_with(log: memoryview, path: str, position: int, offset: int) -> tuple[int, int]:
    """The last offset of the first batch that reaches `offset`, or -1. Also the largest timestamp of the batch, if its
    last offset is `offset`.
    """
    for start, header in iter_batches(log, position, min(len(log), position + NO_LIMIT), path):
        if header.last_offset < offset:
            continue
        if header.last_offset > offset:
            return header.last_offset, _NO_TIMESTAMP
        try:
            return offset, max((each.timestamp for each in iter_batch(log, start, header)), default=_NO_TIMESTAMP)
        except MalformedBytes as problem:
            raise CannotDump(f"Invalid record in the batch at position {start}: {problem}") from None
    return -1, _NO_TIMESTAMP


def _check_last_offset(path: str, last_offset: int, base_offset: int) -> None:
    if last_offset < base_offset:
        raise CannotDump(
            f"Corrupt index found, index file {os.path.abspath(path)} has non-zero size but the last offset is "
            f"{last_offset} which is less than the base offset {base_offset}"
        )


def _check_time_index(path: str, entries: list[tuple[int, int]], base_offset: int) -> None:
    if not entries:
        return
    (first_timestamp, _), (last_timestamp, last_relative_offset) = entries[0], entries[-1]
    if last_timestamp < first_timestamp:
        raise CannotDump(
            f"Corrupt time index found, time index file ({os.path.abspath(path)}) has non-zero size but the last "
            f"timestamp is {last_timestamp} which is less than the first timestamp {first_timestamp}"
        )
    if last_relative_offset < 0:
        raise CannotDump(
            f"Corrupt time index found, time index file ({os.path.abspath(path)}) has non-zero size but the last "
            f"offset is {base_offset + last_relative_offset} which is less than the first offset {base_offset}"
        )


def _check_size(kind: str, path: str, size: int, entry_size: int) -> None:
    if size % entry_size:
        raise CannotDump(
            f"{kind} file {os.path.abspath(path)} is corrupt, found {size} bytes which is neither positive nor a "
            f"multiple of {entry_size}"
        )
