"""Control batches: records that a broker writes for brokers and clients, never for applications.

The formats are Kafka's: the key is version and type, two bytes each; the value depends on the type.
"""

import struct
from enum import IntEnum
from typing import NamedTuple

from kaspar.base.errors import MalformedBytes
from kaspar.base.ids import NO_EPOCH
from kaspar.records.builder import build_batch
from kaspar.records.record import Record

_KEY = struct.Struct(">hh")
_END_TRANSACTION = struct.Struct(">hi")
_VERSION = 0


class ControlType(IntEnum):
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6
    UNKNOWN = -1


class EndTransactionMarker(NamedTuple):
    """How a producer's transaction on this partition ended, and the epoch of the coordinator that ended it."""

    control_type: ControlType
    coordinator_epoch: int


def build_end_transaction_marker(
    marker: EndTransactionMarker,
    *,
    producer_id: int,
    producer_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: int = NO_EPOCH,
) -> bytearray:
    if marker.control_type not in (ControlType.COMMIT, ControlType.ABORT):
        raise ValueError(f"a transaction ends with COMMIT or ABORT, not {marker.control_type.name}")
    value = _END_TRANSACTION.pack(_VERSION, marker.coordinator_epoch)
    return build_batch(
        [Record(timestamp, _KEY.pack(_VERSION, marker.control_type), value)],
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
        leader_epoch=leader_epoch,
    )


def build_leader_change(
    leader_id: int,
    voters: tuple[int, ...],
    granting_voters: tuple[int, ...],
    *,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: int,
) -> bytearray:
    """Build the record with which a new leader begins its epoch."""
    value = struct.pack(">hi", _VERSION, leader_id) + _voters(voters) + _voters(granting_voters) + b"\0"
    return build_batch(
        [Record(timestamp, _KEY.pack(_VERSION, ControlType.LEADER_CHANGE), value)],
        base_offset=base_offset,
        control=True,
        leader_epoch=leader_epoch,
    )


def _voters(voters: tuple[int, ...]) -> bytes:
    """A compact array of voter ids, each followed by its (empty) tagged fields."""
    if len(voters) > 126:
        raise ValueError(f"{len(voters)} voters are too many")
    return bytes([len(voters) + 1]) + b"".join(struct.pack(">ib", voter, 0) for voter in voters)


def control_type(record: Record) -> ControlType:
    """The type of a control batch's record; UNKNOWN for one that a newer Kafka wrote."""
    if record.key is None or len(record.key) < _KEY.size:
        raise MalformedBytes("a control record has no type in its key")
    version, number = _KEY.unpack_from(record.key)
    if version < 0:
        raise MalformedBytes(f"a control record has version {version}")
    return ControlType(number) if number in ControlType.__members__.values() else ControlType.UNKNOWN


def read_end_transaction_marker(record: Record) -> EndTransactionMarker:
    kind = control_type(record)
    if kind not in (ControlType.COMMIT, ControlType.ABORT):
        raise MalformedBytes(f"a control record of type {kind.name} does not end a transaction")
    if record.value is None or len(record.value) < _END_TRANSACTION.size:
        raise MalformedBytes("an end-transaction marker is truncated")
    version, coordinator_epoch = _END_TRANSACTION.unpack_from(record.value)
    if version < 0:
        raise MalformedBytes(f"an end-transaction marker has version {version}")
    return EndTransactionMarker(kind, coordinator_epoch)
