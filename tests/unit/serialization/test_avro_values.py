"""Avro's JSON encoding to bytes and back. The tables are Java's, which tests/compat/registry checks."""

import json
from typing import Any

import pytest

from kaspar.schemas.schema import InvalidSchema
from kaspar.serialization.avro_values import AvroValues
from kaspar.serialization.errors import InvalidValue, UnreadableBytes
from tests.unit.serialization.avro_cases import A_B, BOTH_WAYS, LIST, REFUSED, WRITTEN, Case, field, record

DEEP = 100_000


def values(schema: Any) -> AvroValues:
    return AvroValues(json.dumps(schema), {})


@pytest.mark.parametrize("case", BOTH_WAYS, ids=lambda case: case.name)
def test_value_is_written_and_read(case: Case) -> None:
    prepared = AvroValues(case.schema, {})
    assert prepared.to_bytes(json.loads(case.value)).hex() == case.data
    assert prepared.from_bytes(bytes.fromhex(case.data)) == json.loads(case.value)


@pytest.mark.parametrize("case", WRITTEN, ids=lambda case: case.name)
def test_value_is_written_as_java_does(case: Case) -> None:
    assert AvroValues(case.schema, {}).to_bytes(json.loads(case.value)).hex() == case.data


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_value_that_java_refuses_is_refused(case: Case) -> None:
    with pytest.raises(InvalidValue):
        AvroValues(case.schema, {}).to_bytes(json.loads(case.value))


@pytest.mark.parametrize(
    ("text", "float_bytes", "double_bytes"),
    [
        ("NaN", "0000c07f", "000000000000f87f"),
        ("Infinity", "0000807f", "000000000000f07f"),
        ("-Infinity", "000080ff", "000000000000f0ff"),
    ],
)
def test_numbers_that_json_has_not_are_text_both_ways(text: str, float_bytes: str, double_bytes: str) -> None:
    schema = record(field("f", "float"), field("d", "double"))
    data = bytes.fromhex(float_bytes + double_bytes)
    assert values(schema).from_bytes(data) == {"f": text, "d": text}
    assert values(schema).to_bytes({"f": text, "d": text}) == data


def test_schema_of_bytes_alone_is_not_encoded() -> None:
    """As KafkaAvroSerializer writes byte arrays."""
    prepared = values("bytes")
    assert prepared.to_bytes("ab\u00ff") == b"ab\xff"
    assert prepared.from_bytes(b"ab\xff") == "ab\u00ff"


def test_character_that_is_no_byte_is_refused() -> None:
    with pytest.raises(InvalidValue, match=r"Bytes have no character U\+0100"):
        values("bytes").to_bytes("a\u0100")


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(InvalidValue, match="surrogate"):
        values("string").to_bytes("\ud800")


@pytest.mark.parametrize(
    ("value", "path", "text"),
    [
        ({"items": [{"a": 1, "b": "x"}, {"a": "y", "b": "x"}]}, ("items", 1, "a"), "items[1].a: Expected an int"),
        ({"items": [{"a": 1}]}, ("items", 0), "items[0]: The field b of the record n.R is missing"),
        ({"items": [], "prices": {"eur": {"double": "?"}}}, ("prices", "eur", "double"), "prices.eur.double: Expected"),
    ],
)
def test_error_says_where(value: Any, path: tuple[str | int, ...], text: str) -> None:
    prices = {"type": "map", "values": ["null", "double"]}
    schema = record(field("items", {"type": "array", "items": A_B}), field("prices", prices), name="Order")
    with pytest.raises(InvalidValue) as caught:
        values(schema).to_bytes(value)
    assert caught.value.path == path
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("schema", "data", "reason"),
    [
        ("string", "08", "end too early"),
        ("string", "feffffff0f61", "end too early"),
        ("string", "02ff", "not UTF-8"),
        ("int", "", "end too early"),
        ("long", "80" * 11, "longer than it can be"),
        ("double", "0000", "end too early"),
        (["null", "int"], "08", "names no branch or symbol"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "04", "names no branch or symbol"),
        ({"type": "array", "items": "int"}, "0402", "end too early"),
    ],
)
def test_bytes_of_another_schema_are_refused(schema: Any, data: str, reason: str) -> None:
    with pytest.raises(UnreadableBytes, match="not Avro of the schema") as caught:
        values(schema).from_bytes(bytes.fromhex(data))
    assert reason in str(caught.value)


def test_endless_nesting_is_refused_both_ways() -> None:
    """fastavro's compiled reader would overflow the stack, and end the process."""
    with pytest.raises(UnreadableBytes, match="nested too deeply"):
        values(LIST).from_bytes(b"\x02" * DEEP + b"\0")
    value: Any = None
    for _ in range(DEEP):
        value = {"n.R": {"next": value}}
    with pytest.raises(InvalidValue, match="nested too deeply"):
        values(LIST).to_bytes({"next": value})


def test_recursion_through_two_records_is_seen() -> None:
    schema = record(field("other", record(field("back", ["null", "n.A"]), name="n.B")), name="n.A")
    with pytest.raises(UnreadableBytes, match="nested too deeply"):
        values(schema).from_bytes(b"\x02" * DEEP + b"\0")


@pytest.mark.parametrize("items", ["null", record(), {"type": "fixed", "name": "F", "size": 0}])
def test_arrays_that_cost_no_bytes_are_not_read(items: Any) -> None:
    with pytest.raises(UnreadableBytes, match="items without bytes"):
        values({"type": "array", "items": items}).from_bytes(b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f\0")


def test_schemas_it_refers_to_are_resolved() -> None:
    inner = json.dumps(record(field("z", "string"), name="shop.Zip"))
    address = json.dumps(record(field("zip", "shop.Zip"), name="shop.Address"))
    order = json.dumps(record(field("to", "shop.Address"), field("from", ["null", "shop.Zip"]), name="shop.Order"))
    prepared = AvroValues(order, {"shop.Zip": inner, "shop.Address": address})
    value = {"to": {"zip": {"z": "1"}}, "from": {"shop.Zip": {"z": "2"}}}
    assert prepared.from_bytes(prepared.to_bytes(value)) == value


@pytest.mark.parametrize("text", ["", "{}", '{"type": "nope"}', '{"type": "record", "name": "R"}', '"shop.Unknown"'])
def test_text_that_is_no_schema(text: str) -> None:
    with pytest.raises(InvalidSchema):
        AvroValues(text, {})


def test_field_may_be_called_as_the_branch_records_are() -> None:
    schema = record(field("u", ["null", record(field("x", ["null", "int"]), name="kaspar.union.Branch")]))
    prepared = values(schema)
    value = {"u": {"kaspar.union.Branch": {"x": {"int": 1}}}}
    assert prepared.from_bytes(prepared.to_bytes(value)) == value
