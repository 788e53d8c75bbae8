"""Producer snapshots in Kafka's format (version 1): the state of every producer up to the offset in the file's name.

A snapshot is written when a segment is rolled (at its base offset) and at a clean shutdown (at the log end offset).
After a crash the state is rebuilt from the newest valid snapshot and the batches after it. Damaged ones are skipped.
"""

import os
import struct
from collections.abc import Iterable

from crc32c import crc32c

from kaspar.base.errors import KasparError
from kaspar.storage.disk.file_names import SNAPSHOT, numbered
from kaspar.storage.disk.files import Files, read_file, write_file
from kaspar.storage.producers.entry import BatchMetadata, ProducerEntry

VERSION = 1
_HEAD = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
# producer id, epoch, last sequence, last offset, offset delta, timestamp, coordinator epoch, transaction's first offset
_ENTRY = struct.Struct(">qhiqiqiq")


class DamagedSnapshot(KasparError):
    pass


def encode(entries: Iterable[ProducerEntry]) -> bytes:
    packed = []
    for entry in entries:
        last = entry.batches[-1] if entry.batches else BatchMetadata(-1, -1, 0, entry.last_timestamp)
        packed.append(
            _ENTRY.pack(
                entry.producer_id,
                entry.producer_epoch,
                last.last_sequence,
                last.last_offset,
                last.offset_delta,
                entry.last_timestamp,
                entry.coordinator_epoch,
                entry.current_txn_first_offset,
            )
        )
    body = _COUNT.pack(len(packed)) + b"".join(packed)
    return _HEAD.pack(VERSION, crc32c(body)) + body


def decode(content: bytes) -> list[ProducerEntry]:
    if len(content) < _HEAD.size + _COUNT.size:
        raise DamagedSnapshot("the file is too short")
    version, crc = _HEAD.unpack_from(content)
    if version != VERSION:
        raise DamagedSnapshot(f"the version is {version}, not {VERSION}")
    body = memoryview(content)[_HEAD.size :]
    if crc32c(body) != crc:
        raise DamagedSnapshot("the checksum is wrong")
    (count,) = _COUNT.unpack_from(body)
    if len(body) != _COUNT.size + count * _ENTRY.size:
        raise DamagedSnapshot(f"the length does not match the {count} entries")
    return [_entry(*fields) for fields in _ENTRY.iter_unpack(body[_COUNT.size :])]


def _entry(
    producer_id: int,
    epoch: int,
    last_sequence: int,
    last_offset: int,
    offset_delta: int,
    timestamp: int,
    coordinator_epoch: int,
    current_txn_first_offset: int,
) -> ProducerEntry:
    entry = ProducerEntry(producer_id, epoch)
    entry.coordinator_epoch = coordinator_epoch
    entry.last_timestamp = timestamp
    entry.current_txn_first_offset = max(current_txn_first_offset, -1)
    if last_offset >= 0:
        entry.batches.append(BatchMetadata(last_sequence, last_offset, offset_delta, timestamp))
    return entry


def write_snapshot(files: Files, folder: str, offset: int, entries: Iterable[ProducerEntry]) -> None:
    """Write a snapshot atomically, without syncing it: a lost snapshot only makes recovery longer."""
    write_file(files, os.path.join(folder, numbered(offset, SNAPSHOT)), encode(entries), sync=False)


def read_snapshot(files: Files, folder: str, offset: int) -> list[ProducerEntry]:
    return decode(read_file(files, os.path.join(folder, numbered(offset, SNAPSHOT))))
