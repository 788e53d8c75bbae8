"""The format of changes in the buffer of a suppression, with the context of their records.

Fixed fields come first: timestamp, offset, partition, and the number of headers. Parts of variable length follow, each
preceded by its size (-1 for None): topic, the three values, and name and value of each header. An old value that equals
the prior one is not repeated (size -2).
"""

import struct
from typing import Final, NamedTuple

from kaspar.streams.topology.context import Headers

_FIXED: Final = struct.Struct(">qqiH")
_SIZE: Final = struct.Struct(">i")
_ABSENT, _AS_PRIOR = -1, -2


class BufferedChange(NamedTuple):
    prior: bytes | None
    """The value before the first buffered change of the key: the last value that downstream steps have seen."""
    old: bytes | None
    new: bytes | None
    timestamp: int
    topic: str
    partition: int
    offset: int
    headers: Headers

    @property
    def size(self) -> int:
        """The size as Kafka estimates it (BufferValue and ProcessorRecordContext.residentMemorySizeEstimate)."""
        values = _length(self.prior) + (0 if self.old == self.prior else _length(self.old)) + _length(self.new)
        headers = sum(len(name) + _length(value) for name, value in self.headers)
        return values + 8 + 8 + len(self.topic) + 4 + headers

    def to_bytes(self) -> bytes:
        fixed = _FIXED.pack(self.timestamp, self.offset, self.partition, len(self.headers))
        old = _SIZE.pack(_AS_PRIOR) if self.old == self.prior else _sized(self.old)
        parts = [fixed, _sized(self.topic.encode()), _sized(self.prior), old, _sized(self.new)]
        for name, value in self.headers:
            parts += [_sized(name.encode()), _sized(value)]
        return b"".join(parts)

    @classmethod
    def from_bytes(cls, data: bytes) -> "BufferedChange":
        timestamp, offset, partition, header_count = _FIXED.unpack_from(data)
        topic, at = _part(data, _FIXED.size)
        prior, at = _part(data, at)
        (size,) = _SIZE.unpack_from(data, at)
        old, at = (prior, at + _SIZE.size) if size == _AS_PRIOR else _part(data, at)
        new, at = _part(data, at)
        headers = []
        for _ in range(header_count):
            name, at = _part(data, at)
            value, at = _part(data, at)
            headers.append(((name or b"").decode(), value))
        return cls(prior, old, new, timestamp, (topic or b"").decode(), partition, offset, tuple(headers))


def prior_value(data: bytes) -> bytes | None:
    """Read only the prior value of a change."""
    _, at = _part(data, _FIXED.size)
    return _part(data, at)[0]


def _length(value: bytes | None) -> int:
    return 0 if value is None else len(value)


def _sized(data: bytes | None) -> bytes:
    return _SIZE.pack(_ABSENT) if data is None else _SIZE.pack(len(data)) + data


def _part(data: bytes, at: int) -> tuple[bytes | None, int]:
    (size,) = _SIZE.unpack_from(data, at)
    at += _SIZE.size
    return (None, at) if size == _ABSENT else (data[at : at + size], at + size)
