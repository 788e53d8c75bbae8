"""A hash of the topics that a group's members read: their names, partitions, and racks of replicas.

It is part of the record with the group's epoch, and is identical to Kafka's hash, so that moving a group between Kafka
and Kaspar does not rebalance it.
"""

import struct
from collections.abc import Mapping
from typing import Final

import xxhash

from kaspar.groups.topics import TopicView

NO_METADATA: Final = 0
"""The hash of a group that reads nothing."""
_FORMAT: Final = b"\0"
_INT: Final = struct.Struct("<i")
_LONG: Final = struct.Struct("<q")


def topic_hash(topic: TopicView) -> int:
    parts = [
        _FORMAT,
        topic.topic_id.bytes[7::-1],
        topic.topic_id.bytes[:7:-1],
        _string(topic.name),
        _INT.pack(topic.partition_count),
    ]
    for partition in range(topic.partition_count):
        parts.append(_INT.pack(partition))
        if partition < len(topic.racks):
            for rack in sorted(topic.racks[partition]):
                parts += (_INT.pack(_length(rack)), _string(rack))
    return _signed(b"".join(parts))


def group_hash(topic_hashes: Mapping[str, int]) -> int:
    """The hash of a group, from the hashes of the existing topics that it reads."""
    if not topic_hashes:
        return NO_METADATA
    return _signed(b"".join(_LONG.pack(topic_hashes[name]) for name in sorted(topic_hashes)))


def _string(text: str) -> bytes:
    """The text as Java hashes it: the UTF-16 units, then their number."""
    return text.encode("utf-16-le", "surrogatepass") + _INT.pack(_length(text))


def _length(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _signed(octets: bytes) -> int:
    value = int(xxhash.xxh3_64_intdigest(octets))
    return value if value < 1 << 63 else value - (1 << 64)
