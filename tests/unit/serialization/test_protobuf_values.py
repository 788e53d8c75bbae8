"""Protobuf's JSON form to bytes and back."""

from typing import Any

import pytest

from kaspar.schemas.schema import InvalidSchema
from kaspar.serialization.errors import InvalidValue, UnreadableBytes
from kaspar.serialization.protobuf_values import ProtobufValues

TEXT = """
syntax = "proto3";
package shop;
import "google/protobuf/any.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
message Order {
  int64 big_number = 1;
  repeated int32 counts = 2;
  map<string, Line> lines = 3;
  google.protobuf.Timestamp time = 4;
  google.protobuf.Any any = 5;
  google.protobuf.Struct free = 6;
  google.protobuf.Int32Value maybe = 7;
  optional int32 given = 8;
  oneof choice { int32 left = 9; string right = 10; }
  State state = 11;
  bytes data = 12;
  float price = 13;
}
message Line { bool paid = 1; }
enum State { OPEN = 0; DONE = 1; }
"""
EMPTY = {"bigNumber": "0", "counts": [], "lines": {}, "state": "OPEN", "data": "", "price": 0.0}


@pytest.fixture(scope="module")
def orders() -> ProtobufValues:
    return ProtobufValues(TEXT, {})


def test_fields_without_presence_have_their_defaults(orders: ProtobufValues) -> None:
    assert orders.to_bytes({}) == b"\0"
    assert orders.from_bytes(b"\0") == EMPTY


@pytest.mark.parametrize(
    "value",
    [
        {"bigNumber": "9007199254740993"},
        {"counts": [1, 2]},
        {"lines": {"a": {"paid": True}}},
        {"time": "2020-01-01T00:00:00Z"},
        {"any": {"@type": "type.googleapis.com/shop.Line", "paid": True}},
        {"free": {"a": [1.0, None, "x"]}},
        {"maybe": 0},
        {"given": 0},
        {"right": ""},
        {"state": "DONE"},
        {"data": "AQI="},
        {"price": 0.1},
        {"price": "NaN"},
    ],
    ids=lambda value: next(iter(value)),
)
def test_value_is_written_and_read(orders: ProtobufValues, value: dict[str, Any]) -> None:
    assert orders.from_bytes(orders.to_bytes(value)) == {**EMPTY, **value}


def test_fields_are_known_by_both_names(orders: ProtobufValues) -> None:
    assert orders.to_bytes({"big_number": 1}) == orders.to_bytes({"bigNumber": "1"}) == b"\0\x08\x01"


def test_maps_are_written_in_one_order(orders: ProtobufValues) -> None:
    lines = {key: {"paid": True} for key in "cab"}
    assert orders.to_bytes({"lines": lines}) == orders.to_bytes({"lines": dict(sorted(lines.items()))})


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"nope": 1}, 'has no field named "nope"'),
        ([1], "Expected an object"),
        ({"state": "NOPE"}, "Invalid enum value NOPE"),
        ({"bigNumber": "x"}, "Failed to parse bigNumber"),
        ({"time": "x"}, "Failed to parse time"),
        ({"any": {"@type": "type.googleapis.com/shop.Nope"}}, "Failed to parse any"),
        ({"any": []}, "any"),
        ({"lines": [1]}, "Map field lines"),
        ({"counts": 1}, "repeated field counts"),
        ({"left": 1, "right": "x"}, "oneof"),
    ],
)
def test_value_of_another_type_is_refused(orders: ProtobufValues, value: Any, reason: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        orders.to_bytes(value)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "ends within its message indexes"),
        (b"\0\x08", "The bytes are no shop.Order"),
        (b"\x02\x0a", r"no message with the indexes \[5\]"),
        (b"\0\x2a\x09\x0a\x07unknown", "has no JSON form"),
    ],
)
def test_bytes_of_another_schema_are_refused(orders: ProtobufValues, data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableBytes, match=reason):
        orders.from_bytes(data)


def test_endless_nesting_is_refused_both_ways() -> None:
    prepared = ProtobufValues('syntax = "proto3"; message R { R r = 1; }', {})
    value: Any = {}
    for _ in range(5000):
        value = {"r": value}
    with pytest.raises(InvalidValue):
        prepared.to_bytes(value)
    data = b""
    for _ in range(200):
        size = len(data)
        data = b"\x0a" + bytes((size,) if size < 128 else (size & 127 | 128, size >> 7)) + data
    with pytest.raises(UnreadableBytes):
        prepared.from_bytes(b"\0" + data)


def test_fields_are_printed_in_the_order_of_their_numbers() -> None:
    prepared = ProtobufValues('syntax = "proto3"; message A { int32 c = 3; int32 a = 1; int32 b = 2; }', {})
    assert list(prepared.from_bytes(prepared.to_bytes({"b": 1}))) == ["a", "b", "c"]


def test_fields_of_proto2_have_their_own_defaults() -> None:
    text = """
    syntax = "proto2";
    message A {
      optional int32 count = 1 [default = 7];
      optional A inner = 2;
      oneof choice { string left = 3; }
      repeated bool flags = 4;
    }
    """
    prepared = ProtobufValues(text, {})
    assert prepared.from_bytes(b"\0") == {"count": 7, "flags": []}
    assert prepared.from_bytes(prepared.to_bytes({"inner": {"left": ""}})) == {
        "count": 7,
        "inner": {"count": 7, "left": "", "flags": []},
        "flags": [],
    }


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        ("map<bool, int64> f = 1;", {"true": "5"}),
        ("map<int32, string> f = 1;", {"-1": "x"}),
        ("repeated double f = 1;", [0.1, "NaN", "-Infinity"]),
        ("repeated float f = 1;", [0.1, 3.4e38, 16777216.0, "Infinity"]),
        ("repeated bytes f = 1;", ["", "AQI="]),
        ("repeated uint64 f = 1;", ["18446744073709551615"]),
        ("repeated E f = 1;", ["Z", 7]),
        ("repeated google.protobuf.Value f = 1;", [None, 1.0, {"a": None}]),
    ],
)
def test_value_of_each_kind(declared: str, value: Any) -> None:
    text = f'syntax = "proto3"; import "google/protobuf/struct.proto"; message A {{ {declared} }} enum E {{ Z = 0; }}'
    prepared = ProtobufValues(text, {})
    assert prepared.from_bytes(prepared.to_bytes({"f": value})) == {"f": value}


def test_imports_are_resolved() -> None:
    text = 'syntax = "proto3"; import "line.proto"; message Order { shop.Line line = 1; }'
    line = 'syntax = "proto3"; package shop; message Line { bool paid = 1; }'
    prepared = ProtobufValues(text, {"line.proto": line})
    assert prepared.from_bytes(prepared.to_bytes({"line": {"paid": True}})) == {"line": {"paid": True}}


def test_text_that_is_no_schema() -> None:
    with pytest.raises(InvalidSchema):
        ProtobufValues("message {", {})
