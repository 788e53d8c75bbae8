"""Values in Avro's JSON encoding with their bytes, as Java has them: tests/compat/registry checks that."""

import json
from typing import Any, NamedTuple


class Case(NamedTuple):
    name: str
    schema: str
    value: str
    """As text, since 1.0 and 1 are not the same."""
    data: str
    """In hexadecimal."""


def record(*fields: dict[str, Any], name: str = "n.R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def field(name: str, of: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": of, **more}


def _case(name: str, schema: Any, value: str, data: str = "") -> Case:
    return Case(name, json.dumps(schema), value, data)


A_B = record(field("a", "int"), field("b", "string"))
FIXED = {"type": "fixed", "name": "F", "size": 2}
ENUM = {"type": "enum", "name": "x.E", "symbols": ["A", "B"], "default": "A"}
LIST = record(field("next", ["null", "n.R"]))
MAYBE = ["null", "string"]

BOTH_WAYS = (
    _case("null", "null", "null", ""),
    _case("boolean", "boolean", "true", "01"),
    _case("int", "int", "-1", "01"),
    _case("greatest long", "long", "9223372036854775807", "feffffffffffffffff01"),
    _case("float", "float", "1.5", "0000c03f"),
    _case("a float is printed as a double", "float", "0.10000000149011612", "cdcccc3d"),
    _case("double", "double", "-100.0", "00000000000059c0"),
    _case("string", "string", '"\u20ac\\u0000"', "08e282ac00"),
    _case("bytes within something", {"type": "array", "items": "bytes"}, '["\u00ff\\u0000"]', "0204ff0000"),
    _case("fixed", FIXED, '"a\u00ff"', "61ff"),
    _case("enum", ENUM, '"B"', "02"),
    _case("null of a union", MAYBE, "null", "00"),
    _case("branch of a union", MAYBE, '{"string":"a"}', "020261"),
    _case("a record is named in full", ["null", record(field("a", "int"))], '{"n.R":{"a":1}}', "0202"),
    _case("so is an enum", [ENUM, "string"], '{"x.E":"A"}', "0000"),
    _case("array in a union", [{"type": "array", "items": "int"}, "null"], '{"array":[1]}', "00020200"),
    _case("map in a union", ["null", {"type": "map", "values": "int"}], '{"map":{"k":1}}', "0202026b0200"),
    _case("numbers in a union", ["int", "long", "float", "double"], '{"float":1.0}', "040000803f"),
    _case("text and bytes in a union", ["string", "bytes"], '{"bytes":"a"}', "020261"),
    _case("record", A_B, '{"a":1,"b":"x"}', "020278"),
    _case("array", {"type": "array", "items": "int"}, "[1,2]", "04020400"),
    _case("map", {"type": "map", "values": "int"}, '{"a":1}', "0202610200"),
    _case("record in itself", LIST, '{"next":{"n.R":{"next":null}}}', "0200"),
    _case("timestamps are numbers", {"type": "long", "logicalType": "timestamp-millis"}, "5", "0a"),
    _case("their branch, too", ["null", {"type": "long", "logicalType": "timestamp-millis"}], '{"long":5}', "020a"),
    _case("UUIDs are text", {"type": "string", "logicalType": "uuid"}, '"x"', "0278"),
    _case(
        "decimals are bytes",
        record(field("d", {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2})),
        '{"d":"\\u0001\\u0002"}',
        "040102",
    ),
)

WRITTEN = (
    _case("record without fields", record(), "{}", ""),
    _case("a whole number with a fraction is an int", "int", "1.0", "02"),
    _case("and one with an exponent", "long", "1e3", "d00f"),
    _case("an int is a double", "double", "1", "000000000000f03f"),
    _case("too great for a float", "float", "1e40", "0000807f"),
    _case("null by its name", MAYBE, '{"null":null}', "00"),
    _case("fields in another order", A_B, '{"b":"x","a":1}', "020278"),
    _case("unknown fields are ignored", A_B, '{"c":{"d":[1]},"a":1,"b":"x","e":1}', "020278"),
    _case("a field by its alias", record(field("a", "int", aliases=["old"])), '{"old":1}', "02"),
)

REFUSED = (
    _case("fraction for an int", "int", "1.5"),
    _case("text for an int", "int", '"1"'),
    _case("boolean for an int", "int", "true"),
    _case("too great for an int", "int", "2147483648"),
    _case("too great for a long", "long", "9223372036854775808"),
    _case("text for a float", "float", '"1.5"'),
    _case("number for text", "string", "1"),
    _case("null for text", "string", "null"),
    _case("number for a boolean", "boolean", "1"),
    _case("number for bytes", "bytes", "1"),
    _case("too long for a fixed", FIXED, '"abc"'),
    _case("too short for a fixed", FIXED, '"a"'),
    _case("unknown symbol", ENUM, '"C"'),
    _case("union without its branch", MAYBE, '"a"'),
    _case("unknown branch", MAYBE, '{"int":1}'),
    _case("no branch at all", MAYBE, "{}"),
    _case("branch without its namespace", ["null", record()], '{"R":{}}'),
    _case("branch by its logical type", ["null", {"type": "long", "logicalType": "timestamp-millis"}], '{"x":5}'),
    _case("missing field", A_B, '{"a":1}'),
    _case("missing field with a default", record(field("a", "int", default=1)), "{}"),
    _case("array for a record", A_B, "[]"),
    _case("object for an array", {"type": "array", "items": "int"}, "{}"),
    _case("array for a map", {"type": "map", "values": "int"}, "[]"),
)
