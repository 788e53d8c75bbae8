"""The records of `__consumer_offsets` and `__transaction_state` in printable form."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kaspar.base.errors import MalformedBytes
from kaspar.coordination.decision import StoredRecord
from kaspar.groups import records as group_records
from kaspar.tools.message_json import JsonObject, message_json
from kaspar.transactions import records as transaction_records

OFFSET_COMMITS: Final = (0, 1)
"""The record types of committed offsets. Type 0 was written before Kafka 0.9."""
GROUP_METADATA: Final = 2

_KEY_VERSION: Final = 0
_NUMBER_BYTES: Final = 2


@dataclass(frozen=True, slots=True)
class InternalRecord:
    """`type` is the number at the start of the key, `version` the one at the start of the value. A tombstone has no
    value.
    """

    type: int
    key: JsonObject
    version: int | None
    value: JsonObject | None


def decode_group_record(key: bytes, value: bytes | None) -> InternalRecord | None:
    """None for an unknown type (of share and streams groups). Raises MalformedBytes."""
    return _decode(group_records.decode, key, value)


def decode_transaction_record(key: bytes, value: bytes | None) -> InternalRecord | None:
    """None for an unknown type. Raises MalformedBytes."""
    return _decode(transaction_records.KINDS.decode, key, value)


def record_type(key: bytes) -> int:
    """Raises MalformedBytes."""
    return _number(key)


def _decode(
    decode: Callable[[bytes, bytes | None], StoredRecord | None], key: bytes, value: bytes | None
) -> InternalRecord | None:
    stored = decode(key, value)
    if stored is None:
        return None
    key_json = message_json(stored.key, _KEY_VERSION)
    if value is None or stored.value is None:
        return InternalRecord(_number(key), key_json, None, None)
    version = _number(value)
    return InternalRecord(_number(key), key_json, version, message_json(stored.value, version))


def _number(octets: bytes) -> int:
    if len(octets) < _NUMBER_BYTES:
        raise MalformedBytes("a record of an internal topic is too short to say its kind")
    return int.from_bytes(octets[:_NUMBER_BYTES], "big", signed=True)
