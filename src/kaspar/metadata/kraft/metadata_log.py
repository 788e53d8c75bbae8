"""Reads Kafka's metadata log (`__cluster_metadata-0`): the latest snapshot, and the segments from its end on.

With a single voter every complete batch counts as committed, because no other voter has to acknowledge it. An
incomplete write at the end of the log, after a crash, is ignored, as by Kafka's recovery. Damage anywhere else is an
error, because the records after it would be missing.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kaspar.base.errors import KasparError, MalformedBytes
from kaspar.records import BatchHeader, ControlType, Record, control_type, crc_matches, iter_batch, read_header
from kaspar.records.layout import HEADER_SIZE
from kaspar.storage.disk.file_names import LOG, numbered, parse_numbered
from kaspar.storage.disk.files import OsFiles, read_file

_SNAPSHOT: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint")


class DamagedMetadataLog(KasparError):
    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path} is damaged: {problem}")


@dataclass(frozen=True, slots=True)
class MetadataBatch:
    """`is_control`: the records are KRaft's own, not the controller's."""

    base_offset: int
    is_control: bool
    records: tuple[Record, ...]


class MetadataLog:
    def __init__(self, folder: str) -> None:
        self.end_offset = 0
        """The offset after the last record that was read."""
        self.unfinished_bytes = 0
        """The size of an incomplete write at the end of the log, after a crash."""
        self._folder = folder

    @property
    def is_empty(self) -> bool:
        """Whether the node has never been started."""
        return not self._segments()

    def read(self) -> Iterator[MetadataBatch]:
        """All batches in order. Raises DamagedMetadataLog."""
        snapshot = self._latest_snapshot()
        if snapshot is not None:
            self.end_offset, name = snapshot
            yield from self._read_snapshot(os.path.join(self._folder, name))
        segments = self._segments()
        if not segments or segments[0] > self.end_offset:
            raise DamagedMetadataLog(self._folder, f"records from offset {self.end_offset} on are missing")
        for base_offset, following in zip(segments, [*segments[1:], None], strict=True):
            if following is None or following > self.end_offset:
                yield from self._read_segment(base_offset, is_last=following is None)

    def _latest_snapshot(self) -> tuple[int, str] | None:
        """The end offset of the latest snapshot, and the name of its file."""
        found = [(int(match[1]), int(match[2]), match[0]) for match in map(_SNAPSHOT.fullmatch, self._names()) if match]
        if not found:
            return None
        end_offset, _, name = max(found)
        return end_offset, name

    def _segments(self) -> list[int]:
        named = (parse_numbered(name) for name in self._names())
        return sorted(found[0] for found in named if found is not None and found[1] == LOG)

    def _names(self) -> list[str]:
        return os.listdir(self._folder)

    def _read_snapshot(self, path: str) -> Iterator[MetadataBatch]:
        is_complete = False
        data = _read(path)
        position = 0
        while position < len(data):
            header = _whole_batch(data, position)
            if header is None:
                raise DamagedMetadataLog(path, f"there is no valid batch at position {position}")
            batch = _batch(path, data, position, header)
            is_complete = header.is_control and bool(batch.records) and _is_footer(batch.records[-1])
            yield batch
            position += header.size
        if not is_complete:
            raise DamagedMetadataLog(path, "the snapshot does not end with its footer")

    def _read_segment(self, base_offset: int, *, is_last: bool) -> Iterator[MetadataBatch]:
        path = os.path.join(self._folder, numbered(base_offset, LOG))
        data = _read(path)
        position = 0
        while position < len(data):
            header = _whole_batch(data, position)
            if header is None:
                if not is_last or not _reaches_the_end(data, position):
                    raise DamagedMetadataLog(path, f"there is no valid batch at position {position}")
                self.unfinished_bytes = len(data) - position
                return
            if header.next_offset > self.end_offset:
                if header.base_offset != self.end_offset:
                    raise DamagedMetadataLog(path, f"offset {self.end_offset} is followed by {header.base_offset}")
                yield _batch(path, data, position, header)
                self.end_offset = header.next_offset
            position += header.size


def _batch(path: str, data: bytes, position: int, header: BatchHeader) -> MetadataBatch:
    try:
        records = tuple(iter_batch(data, position, header))
    except MalformedBytes as problem:
        raise DamagedMetadataLog(path, str(problem)) from None
    return MetadataBatch(header.base_offset, header.is_control, records)


def _whole_batch(data: bytes, position: int) -> BatchHeader | None:
    if len(data) - position < HEADER_SIZE:
        return None
    try:
        header = read_header(data, position)
    except MalformedBytes:
        return None
    if header.size > len(data) - position or not crc_matches(data, position, header):
        return None
    return header


def _reaches_the_end(data: bytes, position: int) -> bool:
    """Whether no batch can follow the invalid bytes at the position: they are cut off, all zeros, or the last batch."""
    if not any(data[position:]) or len(data) - position < HEADER_SIZE:
        return True
    try:
        return read_header(data, position).size >= len(data) - position
    except MalformedBytes:
        return False


def _is_footer(record: Record) -> bool:
    return control_type(record) is ControlType.SNAPSHOT_FOOTER


def _read(path: str) -> bytes:
    """Read a whole file. That is not too much: by default Kafka keeps 100 MB of snapshots and segments."""
    return read_file(OsFiles(), path)
