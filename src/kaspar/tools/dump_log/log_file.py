"""Prints the batches of a `.log` file or of a KRaft snapshot (`.checkpoint`), and with `deep` also their records."""

import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from kaspar.base.errors import MalformedBytes
from kaspar.records import BatchHeader, Record, crc_matches, iter_batch
from kaspar.records.control import ControlType, control_type, read_end_transaction_marker
from kaspar.records.layout import DELETE_HORIZON_FLAG
from kaspar.tools.dump_log.batches import iter_batches, opened
from kaspar.tools.dump_log.decoders import Decode, control_text
from kaspar.tools.dump_log.errors import CannotDump

NO_LIMIT: Final = 0x7FFF_FFFF
_SEQUENCES: Final = 1 << 31
_SNAPSHOT: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
_BOOTSTRAP: Final = "bootstrap.checkpoint"
_CODEC_NAMES: Final = ("none", "gzip", "snappy", "lz4", "zstd")


@dataclass(frozen=True, slots=True)
class LogOptions:
    deep: bool
    print_data: bool
    skip_record_metadata: bool
    max_bytes: int
    decode: Decode


def dump_log(path: str, name: str, options: LogOptions, write: Callable[[str], object]) -> dict[int, int]:
    """Returns each offset that is not followed by the next one, with the offset that follows it."""
    write(_title(name))
    gaps: dict[int, int] = {}
    with opened(path) as data:
        end = min(len(data), options.max_bytes)
        valid, last_offset = 0, -1
        for position, header in iter_batches(data, 0, end, path):
            write(_batch_line(data, position, header))
            if options.deep:
                for record in _records(data, position, header):
                    if record.offset != last_offset + 1:
                        gaps[last_offset] = record.offset
                    last_offset = record.offset
                    _write_record(header, record, options, write)
            valid = position + header.size
        if end > valid and options.max_bytes == NO_LIMIT:
            write(f"Found {end - valid} invalid bytes at the end of {name}\n")
    return gaps


def _title(name: str) -> str:
    if name.endswith(".log"):
        return f"Log starting offset: {base_offset_of(name)}\n"
    if name == _BOOTSTRAP:
        return "KRaft bootstrap snapshot\n"
    found = _SNAPSHOT.fullmatch(name)
    if found is None:
        raise CannotDump("No value present")  # as Kafka's
    return f"Snapshot end offset: {int(found[1])}, epoch: {int(found[2])}\n"


def base_offset_of(name: str) -> int:
    digits = name.split(".")[0]
    if re.fullmatch(r"[+-]?\d+", digits, re.ASCII) is None:
        raise CannotDump(f'For input string: "{digits}"')  # as Kafka's
    return int(digits)


def _batch_line(data: memoryview, position: int, header: BatchHeader) -> str:
    codec = header.attributes & 0x07
    if codec >= len(_CODEC_NAMES):
        raise CannotDump(f"Unknown compression type id: {codec}")
    return (
        f"baseOffset: {header.base_offset} lastOffset: {header.last_offset} count: {header.count} "
        f"baseSequence: {header.base_sequence} lastSequence: {_sequence(header, header.last_offset_delta)} "
        f"producerId: {header.producer_id} producerEpoch: {header.producer_epoch} "
        f"partitionLeaderEpoch: {header.leader_epoch} isTransactional: {_java(header.is_transactional)} "
        f"isControl: {_java(header.is_control)} deleteHorizonMs: {_delete_horizon(header)} "
        f"position: {position} {_timestamp_type(header)}: {header.max_timestamp} size: {header.size} "
        f"magic: {header.magic} compresscodec: {_CODEC_NAMES[codec]} crc: {header.crc} "
        f"isvalid: {_java(crc_matches(data, position, header))}\n"
    )


def _write_record(header: BatchHeader, record: Record, options: LogOptions, write: Callable[[str], object]) -> None:
    """Write what is known of the record before decoding it, because that may fail."""
    if not options.skip_record_metadata:
        keys = ",".join(key for key, _ in record.headers)
        write(
            f"| offset: {record.offset} {_timestamp_type(header)}: {record.timestamp} "
            f"keySize: {_size(record.key)} valueSize: {_size(record.value)} "
            f"sequence: {_sequence(header, record.offset - header.base_offset)} headerKeys: [{keys}]"
        )
        if header.is_control:
            write(_control(record))
    if options.print_data and not header.is_control:
        prefix = "| " if options.skip_record_metadata else " "
        key, value = options.decode(record)
        if key is not None:
            write(f"{prefix}key: {key}")
            prefix = " "
        if value is not None:
            write(f"{prefix}payload: {value}")
    write("\n")


def _records(data: memoryview, position: int, header: BatchHeader) -> Iterator[Record]:
    try:
        yield from iter_batch(data, position, header)
    except MalformedBytes as problem:
        raise CannotDump(f"Invalid record in the batch at position {position}: {problem}") from None


def _control(record: Record) -> str:
    try:
        kind = control_type(record)
        if kind in (ControlType.ABORT, ControlType.COMMIT):
            marker = read_end_transaction_marker(record)
            return f" endTxnMarker: {kind.name} coordinatorEpoch: {marker.coordinator_epoch}"
        if kind is ControlType.UNKNOWN:
            assert record.key is not None
            return f" controlType: {kind.name}({struct.unpack_from('>h', record.key, 2)[0]})"
        return control_text(kind, record.value or b"")
    except MalformedBytes as problem:
        raise CannotDump(str(problem)) from None


def _delete_horizon(header: BatchHeader) -> str:
    """A batch with a delete horizon stores it in place of the base timestamp."""
    return f"OptionalLong[{header.base_timestamp}]" if header.attributes & DELETE_HORIZON_FLAG else "OptionalLong.empty"


def _sequence(header: BatchHeader, delta: int) -> int:
    return -1 if header.base_sequence < 0 else (header.base_sequence + delta) % _SEQUENCES


def _timestamp_type(header: BatchHeader) -> str:
    return "LogAppendTime" if header.is_log_append_time else "CreateTime"


def _size(octets: bytes | None) -> int:
    return -1 if octets is None else len(octets)


def _java(value: bool) -> str:
    return "true" if value else "false"
