"""Protobuf schemas beside protobuf's own decoder and protoc: what is called compatible can be read, and a printed
descriptor is the descriptor that it was printed from."""

from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any

import pytest
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from hypothesis import event, given, settings

from kaspar.schemas.protobuf import ProtobufSchema, incompatibilities, parse
from tests.property.protobuf_schemas import FIXED, SCALARS, TEXTS, Schema, evolutions, files
from tests.unit.schemas.protobuf import files as handmade
from tests.unit.schemas.protobuf.descriptors import registered_by_python, without_order_of_fields

EXAMPLES = settings(max_examples=40, deadline=None, database=None)
LONG = settings(max_examples=1000, deadline=None, database=None)


@EXAMPLES
@given(pair=evolutions())
def test_what_is_compatible_can_be_read(pair: tuple[Schema, Schema]) -> None:
    _check_reading(pair)


@pytest.mark.long
@pytest.mark.timeout(600)
@LONG
@given(pair=evolutions())
def test_what_is_compatible_can_be_read_in_many_examples(pair: tuple[Schema, Schema]) -> None:
    _check_reading(pair)


def _check_reading(pair: tuple[Schema, Schema]) -> None:
    """A field that both have keeps its value. All values are ones that every type of their kind has: that a large
    number is cut to 32 bits, or that bytes are no text, is protobuf's and Confluent's idea of compatible."""
    parsed = [(schema, parse(schema.text, {})) for schema in pair]
    for (old, writer), (_, reader) in (parsed, parsed[::-1]):
        if incompatibilities(reader, writer):
            event("incompatible")
            continue
        event("compatible")
        for written in _written(old, writer):
            read = _message_class(reader)()
            read.ParseFromString(written.SerializeToString())
            assert _shared(read, written) == _shared(written, read)


@pytest.mark.parametrize("kind", SCALARS)
def test_scalars_are_compatible_exactly_if_the_value_can_be_read(kind: str) -> None:
    for other in SCALARS:
        writer, reader = _scalar_schema(kind), _scalar_schema(other)
        written = _scalar_class(kind)(f=_scalar(kind))
        read = _scalar_class(other)()
        try:
            read.ParseFromString(written.SerializeToString())
            is_readable = _comparable(read.f) == _comparable(written.f)
        except DecodeError:
            is_readable = False
        assert is_readable == (not incompatibilities(reader, writer)), f"{kind} read as {other}"


@EXAMPLES
@given(text=files())
def test_printed_text_compiles_to_the_same_descriptor(text: str) -> None:
    _check_printed_text(text)


@pytest.mark.long
@pytest.mark.timeout(600)
@LONG
@given(text=files())
def test_printed_text_compiles_to_the_same_descriptor_in_many_examples(text: str) -> None:
    _check_printed_text(text)


def _check_printed_text(text: str) -> None:
    schema = parse(text, {})
    printed = parse(schema.canonical, {})
    assert without_order_of_fields(printed) == without_order_of_fields(schema)
    assert printed.canonical == schema.canonical
    assert parse(schema.normalized, {}).normalized == schema.normalized


@EXAMPLES
@given(text=files())
def test_descriptor_has_the_canonical_text_of_its_source(text: str) -> None:
    _check_descriptor(text)


@pytest.mark.long
@pytest.mark.timeout(600)
@LONG
@given(text=files())
def test_descriptor_has_the_canonical_text_of_its_source_in_many_examples(text: str) -> None:
    _check_descriptor(text)


def _check_descriptor(text: str) -> None:
    schema = parse(text, {})
    described = parse(registered_by_python(schema), {})
    assert described.canonical == schema.canonical
    assert described.normalized == schema.normalized


@pytest.mark.parametrize("text", handmade.ALL.values(), ids=handmade.ALL)
def test_normalized_text_is_compatible_with_the_text_itself(text: str) -> None:
    schema = parse(text, {})
    normalized = parse(schema.normalized, {})
    assert incompatibilities(normalized, schema) == incompatibilities(schema, normalized) == []


@cache
def _scalar_schema(kind: str) -> ProtobufSchema:
    return parse(f'syntax = "proto3"; enum E {{ Z = 0; ONE = 1; }} message T {{ {kind} f = 1; }}', {})


@cache
def _scalar_class(kind: str) -> Any:
    return _message_class(_scalar_schema(kind))


def _message_class(schema: ProtobufSchema) -> Any:
    pool = DescriptorPool()
    for file in schema.files():
        pool.AddSerializedFile(file.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName("T"))


def _written(schema: Schema, writer: ProtobufSchema) -> Iterator[Any]:
    """Messages with all fields set; of a oneof, each field in turn."""
    message_class = _message_class(writer)
    in_oneofs: dict[str, list[str]] = {}
    for field in schema.fields:
        if field.oneof is not None:
            in_oneofs.setdefault(field.oneof, []).append(field.name)
    for chosen in product(*in_oneofs.values()):
        message = message_class()
        for field in schema.fields:
            if field.oneof is None or field.name in chosen:
                _set(message, message_class.DESCRIPTOR.fields_by_name[field.name], field.type)
        yield message


def _set(message: Any, field: Any, kind: str) -> None:
    value = getattr(message, field.name)
    if kind.startswith("map<"):
        key = "k" if "<string" in kind else 1
        if "Leaf" in kind or "Other" in kind:
            value[key].x = 1
        else:
            value[key] = 1 if "int32>" in kind else "1"
    elif field.message_type is not None:
        target = value.add() if field.is_repeated else value
        target.x = 1
    elif field.is_repeated:
        value.append(_scalar(kind))
    else:
        setattr(message, field.name, _scalar(kind))


def _scalar(kind: str) -> Any:
    """A value that all types of its kind have."""
    if kind in TEXTS:
        return "1" if kind == "string" else b"1"
    if kind in ("sint32", "sint64"):
        return -1
    return 1.5 if kind in FIXED[-2:] else 1


def _shared(message: Any, other: Any) -> dict[int, Any]:
    """What a message has in the fields that the other one has, too. One element of a repeated field counts as a single
    one: text and messages may change their label."""
    numbers = other.DESCRIPTOR.fields_by_number
    return {field.number: _comparable(value) for field, value in message.ListFields() if field.number in numbers}


def _comparable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (int, float, bytes)):
        return value
    if hasattr(value, "ListFields"):
        return {field.number: _comparable(inner) for field, inner in value.ListFields()}
    if hasattr(value, "items"):
        return {key: _comparable(inner) for key, inner in value.items()}
    (element,) = value
    return _comparable(element)
