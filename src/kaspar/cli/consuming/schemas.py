"""Decodes records whose schemas are in a registry, as JSON (`--schema-registry`).

A value that starts like those of Confluent's serializers is decoded with its schema, and failures are reported. A key
that starts like this may also be a number, so it is left unchanged if it cannot be decoded. All others are unchanged.
"""

import dataclasses
from collections.abc import Mapping

from kaspar.cli.records.json_text import utf8, write_json
from kaspar.cli.records.record import RawRecord, plain_text
from kaspar.cli.records.types import CannotRead
from kaspar.serialization.errors import RegistryError, RegistryUnavailable, SerializationError
from kaspar.serialization.records import RecordReader
from kaspar.serialization.registry_client import RegistryClient
from kaspar.serialization.registry_config import registry_config
from kaspar.serialization.wire_format import KEY_HEADER, VALUE_HEADER

_BEGINNINGS = (b"\0", b"\1")
_LEAST_BYTES = 5


class SchemaDecoder:
    def __init__(self, registry: Mapping[str, str], *, reads_keys: bool, reads_values: bool) -> None:
        """`registry` has the properties of Confluent's clients. Raises InvalidSetting."""
        self._reader = RecordReader(RegistryClient(registry_config(registry)))
        self._reads_keys = reads_keys
        self._reads_values = reads_values

    def decode(self, raw: RawRecord) -> RawRecord:
        """The record with its key and value as JSON. Raises CannotRead, and RegistryUnavailable."""
        key = self._key(raw) if self._reads_keys else raw.key
        value = self._value(raw) if self._reads_values else raw.value
        return dataclasses.replace(raw, key=key, value=value)

    def _key(self, raw: RawRecord) -> bytes | None:
        if raw.key is None or not _has_schema(raw, raw.key, KEY_HEADER):
            return raw.key
        try:
            return utf8(plain_text(self._reader.decode(raw.key, raw.headers, is_key=True).value))
        except RegistryUnavailable:
            raise
        except (RegistryError, SerializationError):
            return raw.key

    def _value(self, raw: RawRecord) -> bytes | None:
        if raw.value is None or not _has_schema(raw, raw.value, VALUE_HEADER):
            return raw.value
        try:
            return utf8(write_json(self._reader.decode(raw.value, raw.headers).value))
        except RegistryUnavailable:
            raise
        except (RegistryError, SerializationError) as problem:
            raise CannotRead(str(problem).rstrip(".")) from problem


def _has_schema(raw: RawRecord, data: bytes, header: str) -> bool:
    is_framed = data.startswith(_BEGINNINGS) and len(data) >= _LEAST_BYTES
    return is_framed or any(name == header for name, _ in raw.headers)
