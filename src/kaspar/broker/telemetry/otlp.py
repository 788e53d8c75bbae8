"""Reads OpenTelemetry's MetricsData, as far as Kafka's clients use it: gauges, sums and histograms.

Written by hand rather than with the opentelemetry-proto package: few fields are needed, and protobuf would be a
dependency that brokers have for one API. The field numbers are those of opentelemetry/proto/metrics/v1/metrics.proto.

The bytes are a stranger's. Nothing here recurses, unknown fields are skipped, points are read one by one, and whatever
is malformed raises MalformedBytes.
"""

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from kaspar.base.errors import MalformedBytes

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MAX_VARINT_BYTES: Final = 10
_DOUBLE: Final = struct.Struct("<d")
_SIGNED: Final = struct.Struct("<q")
_DELTA: Final = 1

Value: TypeAlias = int | bytes
"""Of a field: a number as its bits, anything else as bytes."""
Attributes: TypeAlias = tuple[tuple[str, str], ...]


class PointKind(Enum):
    GAUGE = "g"
    SUM = "s"
    COUNTER = "c"
    """A sum that only grows."""
    HISTOGRAM = "h"


@dataclass(frozen=True, slots=True)
class Buckets:
    """Of a histogram: `counts` has one more than `bounds`."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: float


@dataclass(frozen=True, slots=True)
class Point:
    metric: str
    kind: PointKind
    is_delta: bool
    attributes: Attributes
    value: float | Buckets


def read_metrics(data: bytes) -> Iterator[Point]:
    """Raises MalformedBytes."""
    for resource in _messages(data, 1):
        for scope in _messages(resource, 2):
            for metric in _messages(scope, 2):
                yield from _points(metric)


def _points(metric: bytes) -> Iterator[Point]:
    name, content, field_of_content = "", b"", 0
    for field, value in _fields(metric):
        if field == 1:
            name = _text(value)
        elif field in (5, 7, 9):
            content, field_of_content = _octets(value), field
    match field_of_content:
        case 5:
            for point in _messages(content, 1):
                yield _number(name, PointKind.GAUGE, is_delta=False, point=point)
        case 7:
            kind = PointKind.COUNTER if _flag(content, 3) else PointKind.SUM
            is_delta = _flag(content, 2) == _DELTA
            for point in _messages(content, 1):
                yield _number(name, kind, is_delta=is_delta, point=point)
        case 9:
            is_delta = _flag(content, 2) == _DELTA
            for point in _messages(content, 1):
                yield _histogram(name, is_delta=is_delta, point=point)


def _number(name: str, kind: PointKind, *, is_delta: bool, point: bytes) -> Point:
    number = 0.0
    attributes = []
    for field, value in _fields(point):
        if field == 4:
            number = _double(value)
        elif field == 6:
            number = _SIGNED.unpack(_eight(value))[0]
        elif field == 7:
            attributes.append(_attribute(_octets(value)))
    return Point(name, kind, is_delta, tuple(attributes), number)


def _histogram(name: str, *, is_delta: bool, point: bytes) -> Point:
    total = 0.0
    counts: list[int] = []
    bounds: list[float] = []
    attributes = []
    for field, value in _fields(point):
        if field == 5:
            total = _double(value)
        elif field == 6:  # packed, or one at a time
            counts += struct.unpack(f"<{_eights(value)}Q", _eights_of(value))
        elif field == 7:
            bounds += struct.unpack(f"<{_eights(value)}d", _eights_of(value))
        elif field == 9:
            attributes.append(_attribute(_octets(value)))
    if len(counts) != len(bounds) + 1 or not all(map(math.isfinite, bounds)) or bounds != sorted(set(bounds)):
        raise MalformedBytes(f"a histogram has {len(counts)} buckets and {len(bounds)} bounds, or not in order")
    buckets = Buckets(tuple(bounds), tuple(counts), total)
    return Point(name, PointKind.HISTOGRAM, is_delta, tuple(attributes), buckets)


def _attribute(key_value: bytes) -> tuple[str, str]:
    key = text = ""
    for field, value in _fields(key_value):
        if field == 1:
            key = _text(value)
        elif field == 2:
            text = _any_value(_octets(value))
    return key, text


def _any_value(message: bytes) -> str:
    for field, value in _fields(message):
        match field:
            case 1:
                return _text(value)
            case 2:
                return "true" if value else "false"
            case 3 if isinstance(value, int):
                return str(value - (1 << 64) if value >> 63 else value)
            case 4:
                return str(_double(value))
    return ""


# -- protobuf ----------------------------------------------------------------------------------------------------------


def _fields(message: bytes) -> Iterator[tuple[int, Value]]:
    """Number and value of each field."""
    position, end = 0, len(message)
    while position < end:
        tag, position = _varint(message, position)
        wire_type = tag & 7
        if wire_type == _VARINT:
            number, position = _varint(message, position)
            yield tag >> 3, number
            continue
        if wire_type == _BYTES:
            size, position = _varint(message, position)
        elif wire_type == _FIXED64:
            size = 8
        elif wire_type == _FIXED32:
            size = 4
        else:
            raise MalformedBytes(f"protobuf has no wire type {wire_type} here")
        if size > end - position:
            raise MalformedBytes("a protobuf field is longer than its message")
        yield tag >> 3, message[position : position + size]
        position += size


def _varint(message: bytes, position: int) -> tuple[int, int]:
    """The number, and where it ends."""
    if position < len(message) and message[position] < 0x80:  # as most are
        return message[position], position + 1
    number = 0
    for shift, octet in enumerate(message[position : position + _MAX_VARINT_BYTES]):
        number |= (octet & 0x7F) << 7 * shift
        if octet < 0x80:
            return number & 0xFFFF_FFFF_FFFF_FFFF, position + shift + 1
    raise MalformedBytes("a protobuf number does not end")


def _messages(message: bytes, number: int) -> Iterator[bytes]:
    return (_octets(value) for field, value in _fields(message) if field == number)


def _flag(message: bytes, number: int) -> int:
    found = 0
    for field, value in _fields(message):
        if field == number and isinstance(value, int):
            found = value
    return found


def _octets(value: Value) -> bytes:
    if isinstance(value, int):
        raise MalformedBytes("a protobuf number stands where a message should")
    return value


def _text(value: Value) -> str:
    return _octets(value).decode(errors="replace")


def _eight(value: Value) -> bytes:
    octets = _octets(value)
    if len(octets) != 8:
        raise MalformedBytes(f"a protobuf number has {len(octets)} bytes, not 8")
    return octets


def _double(value: Value) -> float:
    number: float = _DOUBLE.unpack(_eight(value))[0]
    return number


def _eights_of(value: Value) -> bytes:
    octets = _octets(value)
    if len(octets) % 8:
        raise MalformedBytes(f"protobuf numbers of 8 bytes take {len(octets)}")
    return octets


def _eights(value: Value) -> int:
    return len(_octets(value)) // 8
