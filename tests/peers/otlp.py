"""Writes OpenTelemetry's MetricsData, as clients push it: enough of protobuf for tests."""

import struct
from collections.abc import Mapping, Sequence

DELTA, CUMULATIVE = 1, 2


def metrics_data(*metrics: bytes) -> bytes:
    return _message(1, _message(2, b"".join(_message(2, metric) for metric in metrics)))


def gauge(name: str, value: float, attributes: Mapping[str, str] | None = None) -> bytes:
    return _text(1, name) + _message(5, _message(1, _number(value, attributes)))


def total(
    name: str, value: float, attributes: Mapping[str, str] | None = None, *, delta: bool, monotonic: bool = True
) -> bytes:
    content = _message(1, _number(value, attributes)) + _varint(2, DELTA if delta else CUMULATIVE)
    return _text(1, name) + _message(7, content + _varint(3, int(monotonic)))


def histogram(name: str, bounds: Sequence[float], counts: Sequence[int], sum_: float, *, delta: bool = True) -> bytes:
    point = b"".join(
        (
            _tag(4, 1) + struct.pack("<Q", sum(counts)),
            _tag(5, 1) + struct.pack("<d", sum_),
            _message(6, struct.pack(f"<{len(counts)}Q", *counts)),
            _message(7, struct.pack(f"<{len(bounds)}d", *bounds)),
        )
    )
    return _text(1, name) + _message(9, _message(1, point) + _varint(2, DELTA if delta else CUMULATIVE))


def padding(size: int) -> bytes:
    """A field that nobody knows, of so many bytes in all; at least 16 KiB."""
    for header_size in (4, 5, 6):
        header = _tag(100, 2) + _number_bytes(size - header_size)
        if len(header) == header_size:
            return header + bytes(size - header_size)
    raise ValueError(size)


def _number(value: float, attributes: Mapping[str, str] | None) -> bytes:
    packed = _tag(6, 1) + struct.pack("<q", value) if isinstance(value, int) else _tag(4, 1) + struct.pack("<d", value)
    pairs = (_text(1, key) + _message(2, _text(1, text)) for key, text in (attributes or {}).items())
    return packed + b"".join(_message(7, pair) for pair in pairs)


def _text(field: int, text: str) -> bytes:
    return _message(field, text.encode())


def _message(field: int, content: bytes) -> bytes:
    return _tag(field, 2) + _number_bytes(len(content)) + content


def _varint(field: int, value: int) -> bytes:
    return _tag(field, 0) + _number_bytes(value)


def _tag(field: int, wire_type: int) -> bytes:
    return _number_bytes(field << 3 | wire_type)


def _number_bytes(value: int) -> bytes:
    octets = bytearray()
    while value > 0x7F:
        octets.append(value & 0x7F | 0x80)
        value >>= 7
    octets.append(value)
    return bytes(octets)
