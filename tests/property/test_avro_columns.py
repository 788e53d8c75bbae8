"""Avro records in columns beside fastavro, over generated schemas and data, in both forms of the compiled core; and
bytes of strangers, for which both forms have the same answer."""

import io
import json
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from kaspar.schemas import InvalidSchema
from kaspar.schemas.avro import AvroSchema, incompatibilities, parse
from kaspar.serialization.avro_schemas import has_empty_items
from kaspar.spark.formats import avro_columns
from kaspar.spark.formats.avro_program import Mismatch, plan
from kaspar.spark.formats.avro_types import spark_type
from kaspar.spark.formats.data_types import arrow_type_of
from kaspar.spark.kafka_settings import InvalidOption
from tests.property.avro_schemas import encodings, evolutions, schemas
from tests.unit.records.forms import FORMS, core_in_form

MODULE = "kaspar.serialization.core.avro_filling"
EXAMPLES = settings(max_examples=100, deadline=None, database=None, suppress_health_check=list(HealthCheck))
Result = tuple[list[Any], dict[int, str]]


def read(form: str, reader: AvroSchema, writer: AvroSchema, records: list[bytes]) -> Result:
    """The values, and why some could not be read."""
    arrow_type = arrow_type_of(spark_type(reader.root))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(avro_columns, "avro_filling", core_in_form(form, MODULE))
        values, bad = avro_columns.read_rows(
            plan(writer.root, reader.root),
            pa.array(records, pa.binary()),
            np.arange(len(records), dtype=np.int32),
            arrow_type,
        )
    values.validate(full=True)
    return values.to_pylist(maps_as_pydicts="strict"), dict(bad)


def read_by_fastavro(reader: AvroSchema, writer: AvroSchema, record: bytes) -> Any:
    written, wanted = (fastavro.parse_schema(json.loads(each.canonical)) for each in (writer, reader))
    return fastavro.schemaless_reader(io.BytesIO(record), written, None if reader is writer else wanted)


def as_ours(value: Any, ours: Any) -> Any:
    """fastavro leaves the defaults of bytes as text."""
    if isinstance(ours, dict) and isinstance(value, dict):
        return {name: as_ours(each, ours.get(name)) for name, each in value.items()}
    return value.encode("latin-1") if isinstance(ours, bytes) and isinstance(value, str) else value


def columnar(text: str) -> AvroSchema:
    """A schema that a column can hold."""
    try:
        schema = parse(text, {})
        spark_type(schema.root)
    except (InvalidSchema, InvalidOption):
        assume(False)
    assume(not has_empty_items(schema.root))
    return schema


@pytest.mark.parametrize("form", FORMS)
@EXAMPLES
@given(text=schemas())
def test_values_are_those_of_fastavro(form: str, text: str) -> None:
    schema = columnar(text)
    records = encodings(schema.root)
    values, bad = read(form, schema, schema, records)
    assert bad == {}
    assert values == [read_by_fastavro(schema, schema, record) for record in records]


@pytest.mark.parametrize("form", FORMS)
@EXAMPLES
@given(pair=evolutions())
def test_what_is_compatible_is_read_as_fastavro_reads_it(form: str, pair: tuple[str, str]) -> None:
    reader = columnar(pair[1])
    writer = parse(pair[0], {})
    assume(not has_empty_items(writer.root))
    if incompatibilities(reader, writer):
        event("incompatible")
        return
    records = encodings(writer.root)
    event("compatible")
    values, bad = read(form, reader, writer, records)
    assert bad == {}
    theirs = [read_by_fastavro(reader, writer, record) for record in records]
    assert values == [as_ours(value, ours) for value, ours in zip(theirs, values, strict=True)]


@pytest.mark.parametrize("form", FORMS)
@EXAMPLES
@given(pair=evolutions())
def test_what_is_incompatible_is_never_read_in_full(form: str, pair: tuple[str, str]) -> None:
    reader = columnar(pair[1])
    writer = parse(pair[0], {})
    assume(not has_empty_items(writer.root) and bool(incompatibilities(reader, writer)))
    records = encodings(writer.root)
    assume(bool(records))
    try:
        _, bad = read(form, reader, writer, records)
    except Mismatch:
        event("refused as a whole")
        return
    assert bad


@EXAMPLES
@given(text=schemas(), data=st.data())
def test_bytes_of_strangers_are_bad_in_both_forms_and_hurt_no_neighbour(text: str, data: st.DataObject) -> None:
    schema = columnar(text)
    good = encodings(schema.root)
    assume(bool(good))
    strange = [data.draw(_damaged(record)) for record in good]
    records = [record for pair in zip(good, strange, strict=True) for record in pair]
    results = [read(form, schema, schema, records) for form in FORMS]
    assert repr(results[0]) == repr(results[1])  # repr: NaN is equal to itself
    values, bad = results[0]
    assert all(values[row] is None for row in bad)
    assert values[::2] == [read_by_fastavro(schema, schema, record) for record in good]


@st.composite
def _damaged(draw: Any, record: bytes) -> bytes:
    """Cut, extended, with other bytes in the midst, or anything."""
    at = draw(st.integers(0, len(record)))
    match draw(st.sampled_from(["cut", "longer", "changed", "anything"])):
        case "cut":
            return record[:at]
        case "longer":
            return record + bytes(draw(st.binary(min_size=1, max_size=12)))
        case "changed":
            return record[:at] + bytes(draw(st.binary(max_size=12))) + record[at:]
    return bytes(draw(st.binary(max_size=40)))
