"""Requests from plain data and responses to plain data, with kio at any version.

A request is written once, with the fields of every version; those that the version lacks are left out, those not given
take the schema's default. A name that no version knows is an error, so a misspelt field cannot hide.
Plain data: durations and points in time are milliseconds, error codes their names, records a list of batches.
"""

import datetime
import functools
import io
import types
import typing
import uuid
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any

from kio.index import load_entity_schema
from kio.schema.errors import ErrorCode
from kio.schema.request_header.v1.header import RequestHeader as RequestHeaderV1
from kio.schema.request_header.v2.header import RequestHeader as RequestHeaderV2
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType
from kio.static.protocol import Entity

from tests.compat.responses.api import Api
from tests.compat.responses.batches import describe
from tests.compat.responses.describe_transactions import DescribeTransactionsResponse

CLIENT_ID = "responses"
_RESPONSES = {Api.DESCRIBE_TRANSACTIONS: DescribeTransactionsResponse}
Plain = Any  # nested dicts, lists, numbers, texts and None


class UnreadableResponseError(Exception):
    """The response's bytes are not a whole message of its version, or not the only way to write it."""


def encode_request(api: Api, version: int, correlation_id: int, body: Mapping[str, object]) -> bytes:
    """Header and body of a request, without the length in front."""
    schema = load_entity_schema(api.schema, version, EntityType.request)
    _check_names(api, body)
    return encode_header(api.key, version, correlation_id, flexible=schema.__flexible__) + _encode(_build(schema, body))


def encode_header(api_key: int, version: int, correlation_id: int, *, flexible: bool) -> bytes:
    header = RequestHeaderV2 if flexible else RequestHeaderV1
    values = {
        "request_api_key": api_key,
        "request_api_version": version,
        "correlation_id": correlation_id,
        "client_id": CLIENT_ID,
    }
    return _encode(_build(header, values))


def decode_response(api: Api, version: int, payload: bytes) -> tuple[int, Plain]:
    """The correlation id and the body as plain data."""
    schema: Any = _RESPONSES.get(api) or load_entity_schema(api.schema, version, EntityType.response)
    header, header_size = entity_reader(schema.__header_schema__)(payload, 0)
    body, body_size = entity_reader(schema)(payload, header_size)
    if header_size + body_size != len(payload):
        raise UnreadableResponseError(f"{len(payload) - header_size - body_size} bytes after the end of the response")
    if _encode(body) != payload[header_size:]:
        raise UnreadableResponseError("the response is not in canonical form: re-encoding it gives other bytes")
    return header.correlation_id, plain(body)


def _encode(entity: Entity) -> bytes:
    buffer = io.BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()


def plain(value: object) -> Plain:
    match value:
        case ErrorCode():
            return value.name.upper()
        case datetime.timedelta():
            return value // datetime.timedelta(milliseconds=1)
        case datetime.datetime():
            return round(value.timestamp() * 1000)
        case tuple():
            return [plain(part) for part in value]
        case bytes():
            return describe(value)
        case None | bool() | int() | str() | float() | uuid.UUID():
            return value
    assert is_dataclass(value), f"{value!r} is not of a type that responses contain"
    return {part.name: plain(getattr(value, part.name)) for part in fields(value)}


def _build(schema: type[Entity], values: Mapping[str, object]) -> Entity:
    hints = _hints(schema)
    arguments = {
        part.name: _convert(part, hints[part.name], values[part.name])
        if part.name in values
        else _default(part, hints[part.name])
        for part in fields(schema)
    }
    return schema(**arguments)


def _convert(part: Field[Any], hint: object, value: object) -> object:
    nested = _nested(hint)
    if value is None:
        return None
    if isinstance(value, Mapping):
        assert nested is not None, f"{part.name} is no structure"
        return _build(nested, value)
    if isinstance(value, list):
        return tuple(_build(nested, item) if nested else item for item in value)
    match part.metadata.get("kafka_type"):
        case "timedelta_i32" | "timedelta_i64":
            assert isinstance(value, int)
            return datetime.timedelta(milliseconds=value)
        case "uuid" if value == uuid.UUID(int=0):
            return None  # kio's word for the zero id
    return value


def _default(part: Field[Any], hint: object) -> object:
    if part.default is not MISSING:
        return part.default
    if type(None) in typing.get_args(hint):
        return None
    if typing.get_origin(hint) is tuple:
        return ()
    match part.metadata.get("kafka_type"):
        case "string":
            return ""
        case "bool":
            return False
        case "timedelta_i32" | "timedelta_i64":
            return datetime.timedelta()
    return 0


def _nested(hint: object) -> type[Entity] | None:
    """The structure that a field holds, alone or in an array."""
    if is_dataclass(hint) and isinstance(hint, type):
        return typing.cast(type[Entity], hint)
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) in (tuple, typing.Union):
        for argument in typing.get_args(hint):
            if found := _nested(argument):
                return found
    return None


@functools.cache
def _hints(schema: type[Entity]) -> dict[str, object]:
    return typing.get_type_hints(schema)


@functools.cache
def _known_names(api: Api) -> dict[str, frozenset[str]]:
    """For each path in the request, the field names that some version has there."""
    names: dict[str, set[str]] = {}

    def visit(schema: type[Entity], path: str) -> None:
        for part in fields(schema):
            names.setdefault(path, set()).add(part.name)
            if nested := _nested(_hints(schema)[part.name]):
                visit(nested, f"{path}.{part.name}")

    for version in api.versions:
        visit(load_entity_schema(api.schema, version, EntityType.request), "")
    return {path: frozenset(known) for path, known in names.items()}


def _check_names(api: Api, body: Mapping[str, object], path: str = "") -> None:
    if unknown := body.keys() - _known_names(api).get(path, frozenset()):
        raise ValueError(f"no version of {api.title} has {', '.join(sorted(unknown))} in '{path or 'the request'}'")
    for name, value in body.items():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, Mapping):
                _check_names(api, item, f"{path}.{name}")
