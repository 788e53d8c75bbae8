"""Avro records in columns: types, evolution, and what is bad."""

import datetime
import io
import json
import uuid
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from pyspark.sql.types import DataType, DoubleType, LongType, StringType

from kaspar.base.varints import varlong
from kaspar.spark.formats import avro_columns
from kaspar.spark.formats.avro import AvroDecoder
from kaspar.spark.formats.data_types import arrow_type_of, data_type_of
from kaspar.spark.kafka_settings import InvalidOption
from tests.unit.records.forms import FORMS, core_in_form

MODULE = "kaspar.serialization.core.avro_filling"


def encoded(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def record(*fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": "shop.Order", "fields": [{"name": name, "type": kind} for name, kind in fields]}


def decoded(schema: Any, value: Any) -> Any:
    decoder = AvroDecoder(json.dumps(schema))
    done = decoder.decode(pa.array([encoded(schema, value)], pa.binary()))
    assert done.bad == {}
    assert done.values.type == arrow_type_of(decoder.data_type)
    return done.values[0].as_py()


MOMENT = datetime.datetime(2024, 5, 1, 12, 30, 0, 250_000)
IN_UTC = MOMENT.replace(tzinfo=datetime.UTC)
PRICE = Decimal("-1.05")


@pytest.mark.parametrize(
    ("schema", "data_type", "value", "read"),
    [
        ("boolean", "boolean", True, True),
        ("int", "int", -5, -5),
        ("long", "bigint", 2**60, 2**60),
        ("float", "float", 1.5, 1.5),
        ("double", "double", 0.1, 0.1),
        ("bytes", "binary", b"\xff", b"\xff"),
        ("string", "string", "é", "é"),
        ({"type": "int", "logicalType": "date"}, "date", MOMENT.date(), MOMENT.date()),
        ({"type": "long", "logicalType": "timestamp-millis"}, "timestamp", IN_UTC, IN_UTC),
        ({"type": "long", "logicalType": "timestamp-micros"}, "timestamp", IN_UTC, IN_UTC),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, "timestamp_ntz", MOMENT, MOMENT),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, "timestamp_ntz", MOMENT, MOMENT),
        ({"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}, "decimal(6,2)", PRICE, PRICE),
        (
            {"type": "fixed", "name": "D", "size": 8, "logicalType": "decimal", "precision": 10, "scale": 3},
            "decimal(10,3)", Decimal("1234567.891"), Decimal("1234567.891"),
        ),
        ({"type": "string", "logicalType": "uuid"}, "string", uuid.UUID(int=7), str(uuid.UUID(int=7))),
        ({"type": "fixed", "name": "F", "size": 2}, "binary", b"ab", b"ab"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "string", "B", "B"),
        ({"type": "array", "items": ["null", "long"]}, "array<bigint>", [1, None], [1, None]),
        ({"type": "map", "values": "int"}, "map<string,int>", {"a": 1}, [("a", 1)]),
        (["null", "string"], "string", "x", "x"),
        (["int", "long"], "bigint", 5, 5),
        ([{"type": "null"}, "int"], "int", 5, 5),
        ([{"type": "null"}, {"type": "int"}, "long"], "bigint", 5, 5),
        (["null", "double", "float"], "double", 0.5, 0.5),
        (
            {"type": "array", "items": {"type": "long", "logicalType": "timestamp-millis"}},
            "array<timestamp>", [IN_UTC], [IN_UTC],
        ),
    ],
)  # fmt: skip
def test_types_are_those_of_from_avro(schema: Any, data_type: str, value: Any, read: Any) -> None:
    meant = data_type_of(f"v {data_type}")[0].dataType  # type: ignore[index]
    assert AvroDecoder(json.dumps(schema)).data_type == meant
    assert decoded(schema, value) == read


def test_records_nest_and_name_each_other() -> None:
    point = {"type": "record", "name": "Point", "fields": [{"name": "x", "type": "int"}]}
    schema = record(("a", point), ("b", ["null", "shop.Point"]), ("m", {"type": "map", "values": "shop.Point"}))
    value = {"a": {"x": 1}, "b": None, "m": {"k": {"x": 2}}}
    assert decoded(schema, value) == {"a": {"x": 1}, "b": None, "m": [("k", {"x": 2})]}


def test_what_was_written_with_one_schema_is_read_as_another() -> None:
    old = record(("id", "int"), ("gone", "string"))
    new = record(("id", "long"))
    new["fields"].append({"name": "city", "type": ["null", "string"], "default": None})
    done = AvroDecoder(json.dumps(old), json.dumps(new)).decode(pa.array([encoded(old, {"id": 1, "gone": "x"})]))
    assert done.values.to_pylist() == [{"id": 1, "city": None}]
    assert done.values.type.field("id").type == pa.int64()


def test_bad_records_are_named_and_spoil_nothing() -> None:
    schema = record(("id", "long"), ("name", "string"))
    good = encoded(schema, {"id": 1, "name": "x"})
    done = AvroDecoder(json.dumps(schema)).decode(
        pa.array([good, good[:-1], None, good + b"!", b"\x02\x02\xff", b"", good], pa.binary())
    )
    fine = {"id": 1, "name": "x"}
    assert done.values.to_pylist() == [fine, None, None, None, None, None, fine]
    assert list(done.bad) == [1, 3, 4, 5]
    assert done.bad[1] == "it is not Avro data of the given schema (it ends too early)"
    assert done.bad[3] == "it is not Avro data of the given schema (1 bytes are left over)"


def test_a_number_too_large_for_its_type_is_bad() -> None:
    done = AvroDecoder('"int"').decode(pa.array([encoded("long", 2**40), encoded("int", 3)], pa.binary()))
    assert done.values.to_pylist() == [None, 3]
    assert done.bad == {0: "it has a number that its type cannot hold"}


@pytest.mark.parametrize("logical", ["timestamp-millis", "local-timestamp-millis"])
def test_a_time_that_microseconds_cannot_hold_is_bad(logical: str) -> None:
    schema = record(("until", ["null", {"type": "long", "logicalType": logical}]))
    numbers = record(("until", ["null", "long"]))
    records = [encoded(numbers, {"until": until}) for until in (2**63 - 1, 0)]
    done = AvroDecoder(json.dumps(schema)).decode(pa.array(records, pa.binary()))
    assert [value and value["until"].year for value in done.values.to_pylist()] == [None, 1970]
    assert done.bad == {0: "it has a number that its type cannot hold"}


@pytest.mark.parametrize(
    ("schema", "complaint"),
    [
        (["int", "string"], "no column can hold the Avro union"),
        ("null", "no column can hold the Avro type null"),
        (record(("next", ["null", "shop.Order"])), "shop.Order is recursive"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 40, "scale": 2}, "40 digits exceeds"),
        ({"type": "record"}, "the Avro schema is invalid"),
        ("unheard-of", "the Avro schema is invalid"),
    ],
)
def test_schemas_that_no_column_can_have_are_refused(schema: Any, complaint: str) -> None:
    with pytest.raises(InvalidOption, match=complaint):
        AvroDecoder(json.dumps(schema))


def test_plain_types_may_be_the_root() -> None:
    expected: list[tuple[str, DataType]] = [("long", LongType()), ("double", DoubleType()), ("string", StringType())]
    for name, data_type in expected:
        assert AvroDecoder(json.dumps(name)).data_type == data_type


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("number", "precision", "fits"),
    [
        (999, 3, True), (-999, 3, True), (1000, 3, False), (-1000, 3, False), (0, 1, True),
        (10**38 - 1, 38, True), (1 - 10**38, 38, True), (10**38, 38, False), (2**127, 38, False), (2**200, 38, False),
        (-(2**64), 20, True), (2**64, 19, False), (10**19, 20, True), (10**19, 19, False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("padding", [0, 30])
def test_decimals_of_any_length_are_checked_against_their_precision(
    form: str, number: int, precision: int, fits: bool, padding: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(avro_columns, "avro_filling", core_in_form(form, MODULE))
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": 0}
    size = number.bit_length() // 8 + 1 + padding
    record = encoded("bytes", number.to_bytes(size, "big", signed=True))
    done = AvroDecoder(json.dumps(decimal)).decode(pa.array([record], pa.binary()))
    assert done.values.to_pylist() == [Decimal(number) if fits else None]
    assert bool(done.bad) is not fits


def test_times_are_converted_and_decimals_are_not_moved() -> None:
    def time(unit: str) -> Any:
        return record(("at", {"type": "long", "logicalType": f"timestamp-{unit}"}))

    def price(scale: int) -> Any:
        return record(("at", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": scale}))

    for written, number in (("millis", 1500), ("micros", 1_500_000)):
        data = encoded(record(("at", "long")), {"at": number})
        for read in ("millis", "micros"):
            done = AvroDecoder(json.dumps(time(written)), json.dumps(time(read))).decode(pa.array([data], pa.binary()))
            assert done.values.field("at").cast(pa.int64()).to_pylist() == [1_500_000]
    with pytest.raises(InvalidOption, match="a decimal of scale 2 is not one of scale 3"):
        AvroDecoder(json.dumps(price(2)), json.dumps(price(3)))


@pytest.mark.parametrize("form", FORMS)
def test_a_few_bytes_do_not_claim_many_items(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro_columns, "avro_filling", core_in_form(form, MODULE))
    decoder = AvroDecoder('{"type": "array", "items": "long"}')
    huge = [
        varlong(2**62),
        varlong(-(2**63)) + varlong(0) + b"\0",
        varlong(-(2**62)) + varlong(1) + b"\0",
        varlong(3) + b"\2\2",
    ]
    done = decoder.decode(pa.array(huge, pa.binary()))
    assert list(done.bad) == [0, 1, 2, 3]
    with pytest.raises(InvalidOption, match="arrays of items without bytes"):
        AvroDecoder(
            '{"type": "record", "name": "R", "fields": [{"name": "gone", "type": {"type": "array", "items": "null"}}]}',
            '{"type": "record", "name": "R", "fields": []}',
        )


@pytest.mark.parametrize("form", FORMS)
def test_a_skipped_record_may_be_recursive_and_not_without_end(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro_columns, "avro_filling", core_in_form(form, MODULE))
    node = {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]}
    written, wanted = record(("list", node), ("id", "int")), record(("id", "int"))
    records = [b"\x02" * depth + b"\0" + varlong(7) for depth in (0, 100, 100_000)]
    done = AvroDecoder(json.dumps(written), json.dumps(wanted)).decode(pa.array(records, pa.binary()))
    assert done.values.to_pylist() == [{"id": 7}, {"id": 7}, None]
    assert done.bad == {2: "it is not Avro data of the given schema (records are nested too deeply)"}
