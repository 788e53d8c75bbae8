"""Evolutions that people's registries have met, as other registries' test suites list them: what each level says.

Where registries disagree, the expectation is what Confluent's says.
"""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

BACKWARD, FORWARD, FULL = "BACKWARD", "FORWARD", "FULL"
NONE_OF_THEM: frozenset[str] = frozenset()
ALL_OF_THEM = frozenset({BACKWARD, FORWARD, FULL})


def record(*fields: tuple[str, Any] | tuple[str, Any, Any], name: str = "Object") -> dict[str, Any]:
    listed = [{"name": each[0], "type": each[1]} | ({"default": each[2]} if len(each) == 3 else {}) for each in fields]
    return {"type": "record", "name": name, "fields": listed}


def enum(*symbols: str, name: str = "Suit") -> dict[str, Any]:
    return {"type": "enum", "name": name, "symbols": symbols}


def fixed(size: int, *aliases: str, name: str = "md5") -> dict[str, Any]:
    return {"type": "fixed", "name": name, "size": size, "aliases": aliases}


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


NULLABLE_CHILD = ["null", record(("name", "string"), name="Child")]
NULLABLE_LARGER_CHILD = ["null", record(("name", "string"), ("price", "int"), name="Child")]
TIMESTAMP = {"type": "long", "logicalType": "timestamp-millis"}
FOO = record(("foo", "string"), name="Foo")

AVRO: dict[str, tuple[Any, Any, frozenset[str]]] = {
    "int to long": (record(("f", "int")), record(("f", "long")), frozenset({BACKWARD})),
    "long to int": (record(("f", "long")), record(("f", "int")), frozenset({FORWARD})),
    "int to double": (record(("f", "int")), record(("f", "double")), frozenset({BACKWARD})),
    "bytes to string": (record(("f", "bytes")), record(("f", "string")), ALL_OF_THEM),
    "string to bytes": ("string", "bytes", ALL_OF_THEM),
    "int to boolean": (record(("f", "int")), record(("f", "boolean")), NONE_OF_THEM),
    "float to string": (record(("f", "float")), record(("f", "string")), NONE_OF_THEM),
    "string to int": ("string", "int", NONE_OF_THEM),
    "a field without default": (record(("a", "int")), record(("a", "int"), ("b", "int")), frozenset({FORWARD})),
    "a field with default": (record(("a", "int")), record(("a", "int"), ("b", "int", 1)), ALL_OF_THEM),
    "a field removed": (record(("a", "int"), ("b", "int")), record(("a", "int")), frozenset({BACKWARD})),
    "another type in an inner record": (
        record(("a", record(("x", "string"), name="Inner"))),
        record(("a", record(("x", "int"), name="Inner"))),
        NONE_OF_THEM,
    ),
    "a logical type": (record(("t", "long")), record(("t", TIMESTAMP)), ALL_OF_THEM),
    "a symbol added": (enum("A", "B"), enum("A", "B", "C"), frozenset({BACKWARD})),
    "a symbol removed": (enum("A", "B"), enum("A"), frozenset({FORWARD})),
    "an enum renamed": (enum("A"), enum("A", name="Other"), NONE_OF_THEM),
    "an alias of a fixed": (fixed(16, "a"), fixed(16, "a", "b"), ALL_OF_THEM),
    "the size of a fixed": (fixed(16), fixed(32), NONE_OF_THEM),
    "a fixed renamed": (fixed(16), fixed(16, name="other"), NONE_OF_THEM),
    "items of an array": (array("int"), array("long"), frozenset({BACKWARD})),
    "a field in the items": (
        array(record(("a", "string"), name="Item")),
        array(record(("a", "string"), ("b", "string"), name="Item")),
        frozenset({FORWARD}),
    ),
    "values of a map": ({"type": "map", "values": "int"}, {"type": "map", "values": "long"}, frozenset({BACKWARD})),
    "a union that loses a branch": (record(("f", ["string", "int"])), record(("f", ["null", "string"])), NONE_OF_THEM),
    "a union with another branch": (
        record(("f", ["string", "int"])),
        record(("f", ["int", "string", FOO])),
        frozenset({BACKWARD}),
    ),
    "a union to one of its branches": ([array("string"), "string"], "string", frozenset({FORWARD})),
    "a branch to its union": (array("string"), [array("string"), "string"], frozenset({BACKWARD})),
    "a union to something else": ([array("string"), "string"], "int", NONE_OF_THEM),
    "a field in a nullable record": (
        record(("f", NULLABLE_CHILD)),
        record(("f", NULLABLE_LARGER_CHILD)),
        frozenset({FORWARD}),
    ),
    "only a comment": (record(("a", "int")), record(("a", "int")) | {"doc": "said"}, ALL_OF_THEM),
}

PROTO = 'syntax = "proto3"; package a1; '
INNER = "message Test { message Value { string text = 1; %s x = 2; } string test = 1; Value val = 2; %s }"
PROTOBUF: dict[str, tuple[Any, Any, frozenset[str]]] = {
    "an int32 to an enum": (
        PROTO + INNER % ("int32", ""),
        PROTO + INNER % ("Enu", "enum Enu { A = 0; B = 1; }"),
        ALL_OF_THEM,
    ),
    "an int32 to a string": (PROTO + INNER % ("int32", ""), PROTO + INNER % ("string", ""), NONE_OF_THEM),
    "an int32 to an int64": (PROTO + INNER % ("int32", ""), PROTO + INNER % ("int64", ""), ALL_OF_THEM),
    "a message added": (PROTO + "message A {}", PROTO + "message A {} message B {}", frozenset({BACKWARD})),
    "a field moved into a new oneof": (
        PROTO + "message A { string a = 1; }",
        PROTO + "message A { oneof x { string a = 1; } }",
        ALL_OF_THEM,
    ),
    "two fields moved into a oneof": (
        PROTO + "message A { string a = 1; string b = 2; }",
        PROTO + "message A { oneof x { string a = 1; string b = 2; } }",
        frozenset({FORWARD}),
    ),
    "another package": (PROTO + "message A {}", 'syntax = "proto3"; package a2; message A {}', ALL_OF_THEM),
}

CLOSED = {"type": "object", "additionalProperties": False}
OPEN: dict[str, Any] = {"type": "object"}
INTEGER, STRING, NUMBER = {"type": "integer"}, {"type": "string"}, {"type": "number"}
JSON: dict[str, tuple[Any, Any, frozenset[str]]] = {
    "an integer to a number": (INTEGER, NUMBER, frozenset({BACKWARD})),
    "an integer to a string": (INTEGER, STRING, NONE_OF_THEM),
    "a property in a closed object": (CLOSED, CLOSED | {"properties": {"a": INTEGER}}, frozenset({BACKWARD})),
    "a property in an open object": (OPEN, OPEN | {"properties": {"a": INTEGER}}, frozenset({FORWARD})),
    "a required property": (
        OPEN | {"properties": {"a": INTEGER}},
        OPEN | {"properties": {"a": INTEGER}, "required": ["a"]},
        frozenset({FORWARD}),
    ),
    "a larger maximum": (INTEGER | {"maximum": 1}, INTEGER | {"maximum": 2}, frozenset({BACKWARD})),
    "a type widened": (INTEGER, {"type": ["integer", "string"]}, frozenset({BACKWARD})),
    "an enum extended": ({"enum": ["a"]}, {"enum": ["a", "b"]}, frozenset({BACKWARD})),
}
TABLES: dict[str, dict[str, tuple[Any, Any, frozenset[str]]]] = {"AVRO": AVRO, "JSON": JSON, "PROTOBUF": PROTOBUF}


def _text(kind: str, schema: Any) -> str:
    return schema if kind == "PROTOBUF" else json.dumps(schema)


CASES = [
    pytest.param(kind, _text(kind, old), _text(kind, new), levels, id=f"{kind}: {name}")
    for kind, table in TABLES.items()
    for name, (old, new, levels) in table.items()
]


@pytest.fixture(scope="module")
def http() -> Iterator[httpx.Client]:
    with httpx.Client(trust_env=False) as client:
        yield client


@pytest.mark.parametrize(("kind", "old", "new", "levels"), CASES)
def test_what_each_level_says_of_an_evolution(
    url: str, http: httpx.Client, subject: str, kind: str, old: str, new: str, levels: frozenset[str]
) -> None:
    registered = http.post(f"{url}/subjects/{subject}/versions", json={"schema": old, "schemaType": kind})
    assert registered.status_code == 200, registered.text
    allowed = set()
    for level in (BACKWARD, FORWARD, FULL):
        http.put(f"{url}/config/{subject}", json={"compatibility": level})
        checked = http.post(
            f"{url}/compatibility/subjects/{subject}/versions/latest", json={"schema": new, "schemaType": kind}
        )
        assert checked.status_code == 200, checked.text
        if checked.json()["is_compatible"]:
            allowed.add(level)
    assert allowed == levels
