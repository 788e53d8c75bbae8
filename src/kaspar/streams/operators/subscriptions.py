"""The messages between the two tables of a foreign-key join, sent through internal topics (SubscriptionWrapper and
SubscriptionResponseWrapper).

A row of the left table subscribes to the row of the right table that it refers to. The response contains the hash of
the left row's value, so that the left table detects whether the row has changed and the response is outdated.
"""

import enum
import struct
from typing import Any, NamedTuple

import xxhash

from kaspar.streams.serdes import Serde

_HASH_SIZE = 16
_SIZE = struct.Struct(">i")
_HAS_HASH = 1


class Instruction(enum.IntEnum):
    """How the right table handles a subscription."""

    DELETE = 0
    """Do not respond: the left row refers to another row now."""
    DELETE_AND_RESPOND = 1
    SUBSCRIBE_AND_RESPOND = 2
    """Respond even if the right row does not exist."""
    SUBSCRIBE = 3
    """Respond only if the right row exists."""


class Subscription(NamedTuple):
    primary_key: Any
    hash: bytes | None
    """None if the left row was deleted."""
    instruction: Instruction


class Response(NamedTuple):
    hash: bytes | None
    value: Any
    """The value of the right row; None if it does not exist."""


def hash_of(data: bytes | None) -> bytes | None:
    return None if data is None else xxhash.xxh3_128_digest(data)


class SubscriptionSerde:
    """The format: one byte for the instruction, one for flags, the hash if there is one, and the primary key."""

    def __init__(self, primary_keys: Serde[Any] | None) -> None:
        self._keys = primary_keys

    def with_defaults(self, key_serde: Serde[Any], value_serde: Serde[Any]) -> "SubscriptionSerde":
        return self if self._keys is not None else SubscriptionSerde(key_serde)

    def serialize(self, topic: str, value: Subscription | None) -> bytes | None:
        if value is None:
            return None
        assert self._keys is not None, "with_defaults() comes first"
        flags = _HAS_HASH if value.hash is not None else 0
        key = self._keys.serialize(topic, value.primary_key) or b""
        return bytes((value.instruction, flags)) + (value.hash or b"") + key

    def deserialize(self, topic: str, data: bytes | None) -> Subscription | None:
        if data is None:
            return None
        assert self._keys is not None, "with_defaults() comes first"
        end = 2 + _HASH_SIZE if data[1] & _HAS_HASH else 2
        key = self._keys.deserialize(topic, data[end:])
        return Subscription(key, data[2:end] or None, Instruction(data[0]))


class ResponseSerde:
    """The format: one byte for flags, the hash if there is one, and the right row's value. As in Kafka's
    SubscriptionResponseWrapperSerde, a value of zero bytes (an empty text) is read as None."""

    def __init__(self, values: Serde[Any] | None) -> None:
        self._values = values

    def with_defaults(self, key_serde: Serde[Any], value_serde: Serde[Any]) -> "ResponseSerde":
        return self if self._values is not None else ResponseSerde(value_serde)

    def serialize(self, topic: str, value: Response | None) -> bytes | None:
        if value is None:
            return None
        assert self._values is not None, "with_defaults() comes first"
        flags = _HAS_HASH if value.hash is not None else 0
        return bytes((flags,)) + (value.hash or b"") + (self._values.serialize(topic, value.value) or b"")

    def deserialize(self, topic: str, data: bytes | None) -> Response | None:
        if data is None:
            return None
        assert self._values is not None, "with_defaults() comes first"
        end = 1 + _HASH_SIZE if data[0] & _HAS_HASH else 1
        value = self._values.deserialize(topic, data[end:]) if len(data) > end else None
        return Response(data[1:end] or None, value)


def prefix_of(foreign_key: bytes) -> bytes:
    """The prefix of the store keys of all subscriptions to one row (CombinedKeySchema)."""
    return _SIZE.pack(len(foreign_key)) + foreign_key
