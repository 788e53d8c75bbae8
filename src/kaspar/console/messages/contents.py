"""Decodes the bytes of a key, a value or a header: with a schema of the registry, as JSON, as text, or in hexadecimal.

This never fails: bytes that cannot be decoded are shown in another form, with the reason.
"""

import json
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Any, Final, Protocol

import msgspec

from kaspar.base.errors import KasparError, MalformedBytes
from kaspar.records.record import Header
from kaspar.schemas.schema import SchemaType
from kaspar.serialization.errors import RegistryError, UnreadableBytes
from kaspar.serialization.records import Decoded
from kaspar.serialization.wire_format import KEY_HEADER, VALUE_HEADER, Headers, read_frame

_SAMPLE: Final = 2000
_MOST_UNREADABLE: Final = 0.1
"""The maximum part of a text that may be broken UTF-8 or control characters; above it, the bytes count as binary."""
_UNREADABLE: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffd]")
_MAGIC_BYTES: Final = (0, 1)
_SMALLEST_FRAME: Final = 5
_INTEGERS: Final = {1: ">b", 2: ">h", 4: ">i", 8: ">q"}
_json: Final = msgspec.json.Decoder()


class Format(StrEnum):
    """The requested format of bytes; AUTO detects it."""

    AUTO = "auto"
    SCHEMA = "schema"
    JSON = "json"
    TEXT = "text"
    INTEGER = "integer"
    HEX = "hex"


class Kind(Enum):
    """The format in which bytes were decoded."""

    NULL = "null"
    AVRO = "avro"
    JSON_SCHEMA = "json-schema"
    PROTOBUF = "protobuf"
    INTERNAL = "internal"
    """A record of Kafka's own topics."""
    JSON = "json"
    TEXT = "text"
    INTEGER = "integer"
    HEX = "hex"


_KINDS: Final = {
    SchemaType.AVRO: Kind.AVRO,
    SchemaType.JSON: Kind.JSON_SCHEMA,
    SchemaType.PROTOBUF: Kind.PROTOBUF,
}


@dataclass(frozen=True, slots=True)
class SchemaName:
    id: int | None
    subject: str | None = None
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Content:
    kind: Kind
    value: Any
    """The value for filters: JSON, or a text."""
    text: str
    schema: SchemaName | None = None
    problem: str | None = None
    """Why the bytes could not be decoded in the expected form."""


class SchemaReader(Protocol):
    def decode(self, data: bytes, headers: Headers, *, is_key: bool) -> Decoded: ...

    def subject_of(self, schema_id: int) -> tuple[str, int] | None: ...


def content_of(
    data: bytes | None,
    wanted: Format = Format.AUTO,
    *,
    headers: tuple[Header, ...] = (),
    is_key: bool = False,
    schemas: SchemaReader | None = None,
    names_subject: bool = False,
) -> Content:
    """Decode these bytes. `names_subject`: whether the registry is asked for a subject that has the schema."""
    if data is None:
        return Content(Kind.NULL, None, "")
    match wanted:
        case Format.HEX:
            return _hex(data)
        case Format.INTEGER:
            return _integer(data)
        case Format.TEXT:
            return _as_text(data)
        case Format.JSON:
            found = _as_json(data)
            return found if isinstance(found, Content) else _plain(data, problem=f"Not valid JSON: {found}.")
        case Format.SCHEMA:
            return _by_schema(data, headers, is_key, schemas, names_subject)
    if schemas is not None and _names_schema(data, headers, is_key):
        return _by_schema(data, headers, is_key, schemas, names_subject)
    return _plain(data)


def internal_content(data: Mapping[str, Any] | None) -> Content:
    """The content of a decoded record of Kafka's own topics."""
    if data is None:
        return Content(Kind.NULL, None, "")
    return Content(Kind.INTERNAL, data, _dumped(data))


# --- by schema --------------------------------------------------------------------------------------------------------


def _names_schema(data: bytes, headers: tuple[Header, ...], is_key: bool) -> bool:
    name = KEY_HEADER if is_key else VALUE_HEADER
    has_frame = len(data) >= _SMALLEST_FRAME and data[0] in _MAGIC_BYTES
    return has_frame or any(key == name for key, _ in headers)


def _by_schema(
    data: bytes, headers: tuple[Header, ...], is_key: bool, schemas: SchemaReader | None, names_subject: bool
) -> Content:
    if schemas is None:
        return _plain(data, problem="No schema registry is configured: set schema.registry.url.")
    try:
        decoded = schemas.decode(data, headers, is_key=is_key)
        text = _dumped(decoded.value)
    except (RegistryError, KasparError, RecursionError) as problem:
        return _plain(data, problem=str(problem), schema=_named(data, headers, is_key))
    schema = decoded.schema
    subject, version = schema.subject, schema.version
    if subject is None and names_subject and schema.id is not None:
        subject, version = schemas.subject_of(schema.id) or (None, None)
    kind = _KINDS[schema.schema.type]
    return Content(kind, decoded.value, text, SchemaName(schema.id, subject, version))


def _named(data: bytes, headers: tuple[Header, ...], is_key: bool) -> SchemaName | None:
    """The schema in the frame or headers of a record that could not be decoded, if it has an id."""
    try:
        key = read_frame(data, headers, is_key=is_key).schema
    except UnreadableBytes:
        return None
    return SchemaName(key) if isinstance(key, int) else None


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


# --- without a schema -------------------------------------------------------------------------------------------------


def _plain(data: bytes, *, problem: str | None = None, schema: SchemaName | None = None) -> Content:
    found: Content | None = None
    if data[:1] in (b"{", b"[", b'"') or data[:1].isspace():
        read = _as_json(data)
        found = read if isinstance(read, Content) else None
    if found is None:
        found = _text_or_hex(data)
    return Content(found.kind, found.value, found.text, schema, problem or found.problem)


def _as_json(data: bytes) -> Content | str:
    """The content, or why the bytes are not JSON."""
    try:
        text = data.decode()
        return Content(Kind.JSON, _json.decode(data), text)
    except UnicodeDecodeError:
        return "it is not in UTF-8"
    except (msgspec.DecodeError, RecursionError) as problem:
        return str(problem)


def _as_text(data: bytes) -> Content:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        text = data.decode(errors="replace")
        problem = f"Not valid UTF-8 from byte {error.start} on; \ufffd marks what cannot be decoded."
        return Content(Kind.TEXT, text, text, problem=problem)
    return Content(Kind.TEXT, text, text)


def _text_or_hex(data: bytes) -> Content:
    sample = data[:_SAMPLE].decode(errors="replace")
    if len(_UNREADABLE.findall(sample)) > len(sample) * _MOST_UNREADABLE:
        return _hex(data)
    return _as_text(data)


def _integer(data: bytes) -> Content:
    form = _INTEGERS.get(len(data))
    if form is None:
        return _plain(data, problem=f"An integer must have 1, 2, 4 or 8 bytes, not {len(data)}.")
    number = struct.unpack(form, data)[0]
    return Content(Kind.INTEGER, number, str(number))


def _hex(data: bytes) -> Content:
    text = data.hex()
    return Content(Kind.HEX, text, text)


# --- Kafka's own topics -----------------------------------------------------------------------------------------------


def internal_contents(topic: str, key: bytes | None, value: bytes | None) -> tuple[Content, Content] | None:
    """The key and value of a record of Kafka's own topics; None for records of other topics and of unknown types."""
    if key is None or topic not in ("__consumer_offsets", "__transaction_state"):
        return None
    from kaspar.tools.internal_records import decode_group_record, decode_transaction_record

    decode = decode_group_record if topic == "__consumer_offsets" else decode_transaction_record
    try:
        found = decode(key, value)
    except MalformedBytes:
        return None
    if found is None:
        return None
    return internal_content({"type": found.type, **found.key}), internal_content(found.value)
