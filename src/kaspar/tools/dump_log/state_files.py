"""Prints the small files of a partition: producer snapshots and the index of aborted transactions."""

import struct
from collections.abc import Callable
from typing import Final

from crc32c import crc32c

from kaspar.tools.dump_log.batches import opened
from kaspar.tools.dump_log.errors import CannotDump
from kaspar.tools.dump_log.log_file import base_offset_of

_SNAPSHOT_HEAD: Final = struct.Struct(">hI")  # version, CRC of the rest
_COUNT: Final = struct.Struct(">i")
# producer id, epoch, last sequence, last offset, offset delta, timestamp, coordinator epoch, transaction's first offset
_PRODUCER: Final = struct.Struct(">qhiqiqiq")
_SNAPSHOT_VERSION: Final = 1
_SEQUENCES: Final = 1 << 31
_ABORTED: Final = struct.Struct(">hqqqq")


class CorruptSnapshot(CannotDump):
    """Reported, but does not end the command."""


def dump_producer_snapshot(path: str, write: Callable[[str], object]) -> None:
    with opened(path) as data:
        if len(data) < _SNAPSHOT_HEAD.size + _COUNT.size:
            raise CorruptSnapshot(f"Snapshot failed schema validation: it has only {len(data)} bytes")
        version, crc = _SNAPSHOT_HEAD.unpack_from(data)
        if version != _SNAPSHOT_VERSION:
            raise CorruptSnapshot(
                f"Snapshot failed schema validation: Snapshot contained an unknown file version {version}"
            )
        body = bytes(data[_SNAPSHOT_HEAD.size :])
    if (computed := crc32c(body)) != crc:
        raise CorruptSnapshot(
            f"Snapshot is corrupt (CRC is no longer valid). Stored crc: {crc}. Computed crc: {computed}"
        )
    (count,) = _COUNT.unpack_from(body)
    for number in range(count):
        write(_producer_line(*_PRODUCER.unpack_from(body, _COUNT.size + number * _PRODUCER.size)))


def _producer_line(
    producer_id: int,
    epoch: int,
    last_sequence: int,
    last_offset: int,
    offset_delta: int,
    timestamp: int,
    coordinator_epoch: int,
    first_offset: int,
) -> str:
    transaction = f"OptionalLong[{first_offset}]" if first_offset >= 0 else "OptionalLong.empty"
    line = (
        f"producerId: {producer_id} producerEpoch: {epoch} coordinatorEpoch: {coordinator_epoch} "
        f"currentTxnFirstOffset: {transaction} lastTimestamp: {timestamp}"
    )
    if last_offset >= 0:
        first_sequence = (last_sequence - offset_delta) % _SEQUENCES
        line += (
            f" firstSequence: {first_sequence} lastSequence: {last_sequence} lastOffset: {last_offset} "
            f"offsetDelta: {offset_delta} timestamp: {timestamp}"
        )
    return line + "\n"


def dump_transaction_index(path: str, name: str, write: Callable[[str], object]) -> None:
    base_offset_of(name)
    with opened(path) as data:
        whole = len(data) // _ABORTED.size * _ABORTED.size
        for version, producer_id, first_offset, last_offset, stable in _ABORTED.iter_unpack(data[:whole]):
            write(
                f"version: {version} producerId: {producer_id} firstOffset: {first_offset} "
                f"lastOffset: {last_offset} lastStableOffset: {stable}\n"
            )
