"""Compatibility of Avro schemas beside the real decoder: fastavro reads all data of a writer whose schema is called
compatible, and fails for some of it otherwise."""

import io
import json
from itertools import product

import fastavro
import pytest
from fastavro.types import Schema
from hypothesis import HealthCheck, assume, event, given, settings

from kaspar.schemas import InvalidSchema
from kaspar.schemas.avro import AvroSchema, incompatibilities, parse
from kaspar.schemas.avro.types import PRIMITIVES
from tests.property.avro_schemas import encodings, evolutions, schemas

EXAMPLES = settings(max_examples=150, deadline=None, database=None, suppress_health_check=[HealthCheck.filter_too_much])
# fastavro decodes records and enums whatever their names are.
UNSEEN_BY_FASTAVRO = "NAME_MISMATCH"


@pytest.mark.parametrize(("reader_kind", "writer_kind"), list(product(sorted(PRIMITIVES), repeat=2)))
def test_primitive_types_are_compatible_exactly_if_they_can_be_decoded(reader_kind: str, writer_kind: str) -> None:
    reader, writer = (parse(f'"{kind}"', {}) for kind in (reader_kind, writer_kind))
    (datum,) = encodings(writer.root)
    assert _can_decode(datum, reader, writer) == (not incompatibilities(reader, writer))


@EXAMPLES
@given(pair=evolutions())
def test_what_is_compatible_can_be_decoded(pair: tuple[str, str]) -> None:
    for reader, writer in _parsed_both_ways(pair):
        if incompatibilities(reader, writer):
            event("incompatible")
            continue
        event("compatible")
        for datum in encodings(writer.root):
            _decode(datum, reader, writer)


@EXAMPLES
@given(pair=evolutions())
def test_what_is_refused_cannot_all_be_decoded(pair: tuple[str, str]) -> None:
    for reader, writer in _parsed_both_ways(pair):
        messages = incompatibilities(reader, writer)
        if not messages or any(UNSEEN_BY_FASTAVRO in message for message in messages):
            continue
        data = encodings(writer.root)
        assert not data or not all(_can_decode(datum, reader, writer) for datum in data)


@EXAMPLES
@given(text=schemas())
def test_a_schema_reads_its_own_data(text: str) -> None:
    schema = parse(text, {})
    assert incompatibilities(schema, parse(schema.canonical, {})) == []


@EXAMPLES
@given(text=schemas())
def test_canonical_and_normalized_text_stay_the_same_when_read_again(text: str) -> None:
    schema = parse(text, {})
    again = parse(schema.canonical, {})
    assert again.canonical == schema.canonical
    assert again.normalized == schema.normalized == parse(schema.normalized, {}).normalized


def _parsed_both_ways(pair: tuple[str, str]) -> list[tuple[AvroSchema, AvroSchema]]:
    try:
        first, second = (parse(text, {}) for text in pair)
    except InvalidSchema:
        assume(False)
        raise
    return [(first, second), (second, first)]


def _can_decode(datum: bytes, reader: AvroSchema, writer: AvroSchema) -> bool:
    try:
        _decode(datum, reader, writer)
    except Exception:  # whatever the decoder raises
        return False
    return True


def _decode(datum: bytes, reader: AvroSchema, writer: AvroSchema) -> None:
    source = io.BytesIO(datum)
    fastavro.schemaless_reader(source, _for_fastavro(writer), _for_fastavro(reader))
    assert source.read() == b""


def _for_fastavro(schema: AvroSchema) -> Schema:
    loaded: Schema = json.loads(schema.canonical)
    return loaded
