"""Encodes records before they are written to a topic: keys and values by their types or schemas."""

import dataclasses
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

import msgspec

from kaspar.base.bounded_cache import BoundedCache
from kaspar.rest.errors import (
    BAD_REQUEST,
    INVALID_SCHEMA,
    KAFKA_AUTHORIZATION,
    PARTITION_NOT_FOUND,
    RestError,
)
from kaspar.rest.formats import Encoder
from kaspar.rest.formats.by_schema import Registration, SchemaFormats, failed
from kaspar.rest.formats.plain import NULL, encode_binary, encode_json
from kaspar.rest.producing import OutgoingRecord
from kaspar.rest.v3.errors import refused_record
from kaspar.rest.v3.producing.bodies import Record, RecordData, WrittenData
from kaspar.schemas.schema import SchemaType
from kaspar.serialization.errors import RegistryError, SerializationError
from kaspar.serialization.records import RecordWriter
from kaspar.serialization.registry_client import RegisteredSchema, RegistryClient, SchemaText
from kaspar.serialization.subject_names import (
    SubjectNameStrategy,
    record_name,
    topic_name,
    topic_record_name,
)

_LATEST_S: Final = 1.0
"""How long the latest version of a subject is used before the registry client is asked again."""
_LATEST: Final = 1000
_HEADER_OVERHEAD: Final = 150
"""The memory that the objects of a header take."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_NOT_FOUND: Final = 404
_INVALID_SCHEMA_CODE: Final = 42201
_STRATEGIES: Final[dict[str, SubjectNameStrategy]] = {
    "TOPIC_NAME": topic_name,
    "RECORD_NAME": record_name,
    "TOPIC_RECORD_NAME": topic_record_name,
}
_SCHEMA_TYPES: Final = {
    "AVRO": SchemaType.AVRO,
    "JSONSCHEMA": SchemaType.JSON,
    "PROTOBUF": SchemaType.PROTOBUF,
}
_TYPES: Final = {schema_type: name for name, schema_type in _SCHEMA_TYPES.items()}

_text: Final = msgspec.json.Decoder(str)


class EncodedRecord(NamedTuple):
    record: OutgoingRecord
    key: WrittenData | None
    value: WrittenData | None
    """`key` and `value` are what the response reports about them."""

    @property
    def size(self) -> int:
        """The approximate memory that the record takes."""
        headers = sum(len(name) + len(value or b"") + _HEADER_OVERHEAD for name, value in self.record.headers or ())
        return len(self.record.key or b"") + len(self.record.value or b"") + headers


class _Part(NamedTuple):
    data: bytes | None
    written: WrittenData | None


def encode_text(raw: msgspec.Raw) -> bytes | None:
    if raw == NULL:
        return None
    try:
        return _text.decode(raw).encode()
    except (msgspec.MsgspecError, UnicodeEncodeError):
        raise RestError(BAD_REQUEST, "the data is not a string.") from None


_PLAIN: Final[dict[str | None, Encoder]] = {"BINARY": encode_binary, "JSON": encode_json, "STRING": encode_text}


class RecordEncoder:
    """Encodes the records of one topic."""

    def __init__(
        self,
        schemas: SchemaFormats,
        topic: str,
        registration: Registration,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._schemas = schemas
        self._topic = topic
        self._registration = registration
        self.begin_group()
        self._latest = BoundedCache[str, RecordWriter](_LATEST, lifetime_s=_LATEST_S, monotonic=monotonic)

    def begin_group(self) -> None:
        """Start a group of records, which share the time limit of an Encoding."""
        self._encoding = self._schemas.encoding()

    async def encode(self, record: Record) -> EncodedRecord:
        """Raises RestError."""
        if record.partition_id is not None and record.partition_id < 0:
            raise RestError(PARTITION_NOT_FOUND)
        key = await self._part(record.key, is_key=True)
        value = await self._part(record.value, is_key=False)
        outgoing = OutgoingRecord(
            key.data,
            value.data,
            -1 if record.partition_id is None else record.partition_id,
            _timestamp_ms(record.timestamp),
            [(each.name, each.value) for each in record.headers] if record.headers else None,
        )
        return EncodedRecord(outgoing, key.written, value.written)

    async def _part(self, data: RecordData | None, *, is_key: bool) -> _Part:
        if data is None:
            return _Part(None, None)
        _check(data)
        encode = _PLAIN.get(data.type)
        if encode is None:
            return await self._by_schema(data, is_key=is_key)
        try:
            encoded = encode(data.data)
        except (RestError, msgspec.MsgspecError, RecursionError) as problem:
            raise refused_record(str(problem)) from None
        assert data.type is not None
        return _Part(encoded, WrittenData(type=data.type, size=len(encoded or b"")))

    async def _by_schema(self, data: RecordData, *, is_key: bool) -> _Part:
        writer = await self._writer(data, is_key=is_key)
        schema = writer.schema
        try:
            encoded = await self._encoding.encode(writer, data.data)
        except SerializationError as problem:
            raise refused_record(str(problem)) from None
        written = WrittenData(
            type=_TYPES[schema.schema.type],
            subject=schema.subject,
            schema_id=schema.id,
            schema_version=schema.version,
            size=len(encoded or b""),
        )
        return _Part(encoded, written)

    # --- Schemas ------------------------------------------------------------------------------------------------------

    async def _writer(self, data: RecordData, *, is_key: bool) -> RecordWriter:
        """Raises RestError."""
        topic, named = self._topic, (data.subject, data.subject_name_strategy)
        if data.schema_id is not None:
            key: tuple[object, ...] = ("v3 id", data.schema_id, topic, is_key, named)
            return await self._schemas.writer(key, lambda registry: self._by_id(registry, data, is_key=is_key))
        if data.schema is not None:
            key = ("v3 text", data.type, data.schema, topic, is_key, named)
            return await self._schemas.writer(
                key, lambda registry: self._by_text(registry, data, is_key=is_key), self._registration
            )
        subject = self._subject_without_schema(data, is_key=is_key)
        if data.schema_version is not None:
            version = data.schema_version
            key = ("v3 version", subject, version)
            return await self._schemas.writer(key, lambda registry: _by_version(registry, subject, version))
        if (known := self._latest.get(subject)) is not None:
            return known
        latest = await self._schemas.ask(lambda registry: _latest(registry, subject))
        writer = await self._schemas.writer(("v3 latest", subject, latest.version, latest.id), lambda registry: latest)
        self._latest.put(subject, writer)
        return writer

    def _by_id(self, registry: RegistryClient, data: RecordData, *, is_key: bool) -> RegisteredSchema:
        assert data.schema_id is not None
        try:
            found = registry.schema_by_id(data.schema_id)
        except RegistryError as error:
            raise failed(error, f"Error when fetching schema by id. schemaId = {data.schema_id}") from None
        registered = _with_version(registry, self._subject(found.schema, data, is_key=is_key), found.schema)
        return dataclasses.replace(registered, id=data.schema_id)

    def _by_text(self, registry: RegistryClient, data: RecordData, *, is_key: bool) -> RegisteredSchema:
        """The schema, which is registered if it is not yet."""
        assert data.schema is not None
        assert data.type is not None
        schema = SchemaText(_SCHEMA_TYPES[data.type], data.schema)
        subject = self._subject(schema, data, is_key=is_key)
        try:
            return registry.lookup(subject, schema)
        except RegistryError as error:
            if error.status != _NOT_FOUND:
                raise _unusable(error, data.type, subject, data.schema) from None
        if not self._registration.any_subject and _names_subject(data):
            raise RestError(KAFKA_AUTHORIZATION, f"The caller may not register a schema under the subject {subject}.")
        try:
            registry.register(subject, schema)
        except RegistryError as error:
            raise _unusable(error, data.type, subject, data.schema) from None
        return _with_version(registry, subject, schema)

    def _subject(self, schema: SchemaText, data: RecordData, *, is_key: bool) -> str:
        if data.subject is not None:
            return data.subject
        strategy = None if data.subject_name_strategy is None else _STRATEGIES[data.subject_name_strategy]
        return self._schemas.subject_of(self._topic, schema, is_key=is_key, strategy=strategy)

    def _subject_without_schema(self, data: RecordData, *, is_key: bool) -> str:
        """Raises RestError if the subject name strategy needs the schema, which is not known before the subject."""
        if data.subject is not None:
            return data.subject
        given = data.subject_name_strategy
        strategy = self._schemas.strategy(is_key=is_key) if given is None else _STRATEGIES[given]
        try:
            return strategy(self._topic, is_key, None)
        except SerializationError:
            which = " default schema_subject_strategy" if given is None else f" schema_subject_strategy={given}"
            raise refused_record(f"Cannot use{which} without schema_id or schema.") from None


def _latest(registry: RegistryClient, subject: str) -> RegisteredSchema:
    try:
        return dataclasses.replace(registry.latest(subject), subject=subject)
    except RegistryError as error:
        raise failed(error, f"Error when fetching latest schema version. subject = {subject}") from None


def _by_version(registry: RegistryClient, subject: str, version: int) -> RegisteredSchema:
    try:
        return dataclasses.replace(registry.version(subject, version), subject=subject)
    except RegistryError as error:
        if error.status == _NOT_FOUND:
            raise refused_record(f"Schema does not exist for subject: {subject}, version: {version}") from None
        raise failed(
            error, f"Error when fetching schema by version. subject = {subject}, version = {version}"
        ) from None


def _with_version(registry: RegistryClient, subject: str, schema: SchemaText) -> RegisteredSchema:
    try:
        return registry.lookup(subject, schema)
    except RegistryError as error:
        sentence = f"Error when fetching schema version. subject = {subject}, schema = {schema.text}"
        raise failed(error, sentence) from None


def _unusable(error: RegistryError, kind: str, subject: str, text: str) -> RestError:
    if error.error_code == _INVALID_SCHEMA_CODE:
        return RestError(INVALID_SCHEMA, str(error))
    return failed(error, f"Error when registering schema. format = {kind}, subject = {subject}, schema = {text}")


def _names_subject(data: RecordData) -> bool:
    """Whether the subject may not belong to the topic: with RECORD_NAME it is the record's name, which may be
    anything."""
    return data.subject is not None or data.subject_name_strategy == "RECORD_NAME"


# --- Checks -----------------------------------------------------------------------------------------------------------


def _check(data: RecordData) -> None:
    """Raises RestError for fields that exclude each other."""
    if data.subject is not None and data.subject_name_strategy is not None:
        raise refused_record("Only one of 'subject_name_strategy' or 'subject' can be used.")
    if sum(each is not None for each in (data.schema_id, data.schema_version, data.schema)) > 1:
        raise refused_record("Only one of 'schema_id', 'schema_version' or 'schema' can be used.")
    if data.type is None:
        if data.schema is not None:
            raise refused_record("'schema' cannot be used without 'type'.")
    elif data.type in _PLAIN:
        _check_plain(data)
    elif data.schema_id is not None:
        raise refused_record(f"'schema_id={data.schema_id}' cannot be used with 'type'.")
    elif data.schema_version is not None:
        raise refused_record(f"'schema_version={data.schema_version}' cannot be used with 'type'.")
    elif data.schema is None:
        raise refused_record("'schema_version=latest' cannot be used with 'type'.")


def _check_plain(data: RecordData) -> None:
    for name in ("subject_name_strategy", "subject", "schema_id", "schema_version", "schema"):
        if getattr(data, name) is not None:
            raise refused_record(f"'type={data.type}' cannot be used with '{name}'.")


def _timestamp_ms(timestamp: datetime | None) -> int:
    """The timestamp, or 0 if there is none, which means the time of writing."""
    if timestamp is None:
        return 0
    timestamp_ms = (timestamp - _EPOCH) // _MILLISECOND
    if timestamp_ms < 0:
        raise refused_record(f"Invalid timestamp: {timestamp_ms}. Timestamp should always be non-negative or null.")
    return timestamp_ms
