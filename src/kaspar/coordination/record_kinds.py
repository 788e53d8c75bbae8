"""The bytes of an internal topic's records, in Kafka's format: a number with the kind of the key, or the version of the
value, followed by the message as its SCHEMA defines it.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from kaspar.base.errors import MalformedBytes
from kaspar.coordination.decision import StoredRecord
from kaspar.protocol import codec
from kaspar.protocol.schema import Message, VersionRange

_NUMBER = struct.Struct(">h")
KEY_VERSION = 0


class RecordKind(NamedTuple):
    """One kind of record. Its keys begin with one of `numbers`: the last one is written, all are read."""

    numbers: tuple[int, ...]
    key: type[Message]
    value: type[Message]
    value_version: int
    """The version that is written. Every version of the value's SCHEMA is read."""


class RecordKinds:
    def __init__(self, kinds: Iterable[RecordKind]) -> None:
        kinds = tuple(kinds)
        self._by_number = {number: kind for kind in kinds for number in kind.numbers}
        self._by_key = {kind.key: kind for kind in kinds}
        self._value_versions = {kind.value: VersionRange.parse(kind.value.SCHEMA.versions) for kind in kinds}

    def __iter__(self) -> Iterator[RecordKind]:
        return iter(self._by_key.values())

    def encode(
        self,
        record: StoredRecord,
        *,
        value_version: int | None = None,
        encoded: Mapping[str, Sequence[bytes]] | None = None,
    ) -> tuple[bytes, bytes | None]:
        """Encode key and value. `encoded`: arrays of the value that are already encoded, as `codec.write` takes
        them.
        """
        kind = self._by_key[type(record.key)]
        key = _NUMBER.pack(kind.numbers[-1]) + codec.write(record.key, KEY_VERSION)
        if record.value is None:
            return key, None
        version = kind.value_version if value_version is None else value_version
        return key, _NUMBER.pack(version) + codec.write(record.value, version, encoded)

    def decode(self, key: bytes, value: bytes | None) -> StoredRecord | None:
        """Decode key and value. None for an unknown kind. Raises MalformedBytes for an invalid record of a known
        kind.
        """
        kind = self._by_number.get(_number(key))
        if kind is None:
            return None
        read_key, _ = codec.read(kind.key, KEY_VERSION, key, _NUMBER.size)
        if value is None:
            return StoredRecord(read_key, None)
        version = _number(value)
        if version not in self._value_versions[kind.value]:
            raise MalformedBytes(f"a {kind.value.__name__} of version {version} comes from a later release")
        read_value, _ = codec.read(kind.value, version, value, _NUMBER.size)
        return StoredRecord(read_key, read_value)


def _number(octets: bytes) -> int:
    if len(octets) < _NUMBER.size:
        raise MalformedBytes("a record of an internal topic is too short to say its kind")
    number: int = _NUMBER.unpack_from(octets)[0]
    return number
