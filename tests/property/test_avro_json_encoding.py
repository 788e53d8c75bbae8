"""Avro's JSON encoding: what is written is what fastavro writes, and is read as it was."""

import contextlib
import io
import json
from typing import Any

import fastavro
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from kaspar.schemas.avro import parse
from kaspar.schemas.avro.types import Array, AvroType, Fixed, Map, Primitive, Record, Union
from kaspar.schemas.schema import InvalidSchema
from kaspar.serialization.avro_schemas import has_empty_items
from kaspar.serialization.avro_values import AvroValues
from kaspar.serialization.errors import UnreadableBytes
from tests.property.avro_json_values import values
from tests.property.avro_schemas import schemas

EXAMPLES = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def schemas_with_values(draw: Any) -> tuple[str, AvroType, Any]:
    text = draw(schemas())
    try:
        root = parse(text, {}, validate_defaults=False).root
    except InvalidSchema:
        assume(False)
        raise
    return text, root, draw(values(root))


@EXAMPLES
@given(example=schemas_with_values())
def test_value_is_read_as_it_was_written(example: tuple[str, AvroType, Any]) -> None:
    text, root, value = example
    prepared = AvroValues(text, {})
    data = prepared.to_bytes(value)
    if has_empty_items(root):
        return
    assert prepared.from_bytes(data) == value


@EXAMPLES
@given(example=schemas_with_values())
def test_bytes_are_fastavros(example: tuple[str, AvroType, Any]) -> None:
    text, root, value = example
    assume(root.kind != "bytes")  # which Confluent does not encode
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(json.loads(text)), _datum(root, value))
    assert AvroValues(text, {}).to_bytes(value) == stream.getvalue()


@EXAMPLES
@given(text=schemas(), data=st.binary(max_size=50))
def test_any_bytes_are_read_or_refused(text: str, data: bytes) -> None:
    try:
        prepared = AvroValues(text, {})
    except InvalidSchema:
        assume(False)
        raise
    with contextlib.suppress(UnreadableBytes):
        json.dumps(prepared.from_bytes(data), allow_nan=False)


def _datum(node: AvroType, value: Any) -> Any:
    """As fastavro takes it, without our schema for it."""
    match node:
        case Fixed() | Primitive(name="bytes"):
            return value.encode("latin-1")
        case Array():
            return [_datum(node.items, item) for item in value]
        case Map():
            return {key: _datum(node.values, inner) for key, inner in value.items()}
        case Record():
            return {field.name: _datum(field.type, value[field.name]) for field in node.fields}
        case Union():
            if value is None:
                return None
            ((name, inner),) = value.items()
            (branch,) = (each for each in node.branches if each.union_name == name)
            return name, _datum(branch, inner)
    return value
