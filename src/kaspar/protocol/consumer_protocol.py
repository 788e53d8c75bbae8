"""What the consumers of a classic group send each other: the bytes of Kafka's ConsumerProtocol. They begin with a
version; a version later than the last known one is read, and written, as the last known one, as in Kafka.
"""

import struct
from typing import Final

from kaspar.base.errors import MalformedBytes
from kaspar.protocol import codec
from kaspar.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kaspar.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kaspar.protocol.schema import VersionRange

MAX_ELEMENTS: Final = 20_000
"""Limit for one member's topics and partitions, which are read on the event loop: bounds the time that this takes."""

_VERSION: Final = struct.Struct(">h")
_LAST_VERSION: Final = VersionRange.parse(ConsumerProtocolSubscription.SCHEMA.versions).last


def version_of(octets: bytes) -> int:
    if len(octets) < _VERSION.size:
        raise MalformedBytes("a subscription or an assignment is too short to say its version")
    version: int = _VERSION.unpack_from(octets)[0]
    if version < 0:
        raise MalformedBytes(f"a subscription or an assignment cannot have version {version}")
    return version


def read_subscription(octets: bytes) -> ConsumerProtocolSubscription:
    version = min(version_of(octets), _LAST_VERSION)
    subscription, _ = codec.read(
        ConsumerProtocolSubscription, version, octets, _VERSION.size, max_elements=MAX_ELEMENTS
    )
    return subscription


def read_assignment(octets: bytes) -> ConsumerProtocolAssignment:
    version = min(version_of(octets), _LAST_VERSION)
    assignment, _ = codec.read(ConsumerProtocolAssignment, version, octets, _VERSION.size, max_elements=MAX_ELEMENTS)
    return assignment


def write_assignment(assignment: ConsumerProtocolAssignment, version: int) -> bytes:
    version = min(version, _LAST_VERSION)
    return _VERSION.pack(version) + codec.write(assignment, version)
