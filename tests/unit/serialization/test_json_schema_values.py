"""Values of a JSON Schema are JSON, checked when they are written."""

import json
from typing import Any

import pytest

from kaspar.schemas.schema import InvalidSchema
from kaspar.serialization.errors import InvalidValue, UnreadableBytes
from kaspar.serialization.json_schema_values import JsonSchemaValues

ORDER = json.dumps(
    {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "to": {"$ref": "address.json"}},
        "required": ["id"],
        "additionalProperties": False,
    }
)
ADDRESS = json.dumps({"type": "object", "properties": {"zip": {"type": "string", "pattern": "^[0-9]+$"}}})


@pytest.fixture(scope="module")
def orders() -> JsonSchemaValues:
    return JsonSchemaValues(ORDER, {"address.json": ADDRESS})


def test_value_is_compact_json(orders: JsonSchemaValues) -> None:
    value = {"id": 1, "to": {"zip": "80331", "name": "\u20ac"}}
    data = orders.to_bytes(value)
    assert data == '{"id":1,"to":{"zip":"80331","name":"\u20ac"}}'.encode()
    assert orders.from_bytes(data) == value


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({}, "#/: lacks the required property 'id'"),
        ({"id": "1"}, "#/id: "),
        ({"id": 1, "more": 1}, "#/more: is not allowed"),
        ({"id": 1, "to": {"zip": "x"}}, "#/to/zip: "),
        ([], "#/: is not an object"),
    ],
)
def test_value_of_another_schema_is_refused(orders: JsonSchemaValues, value: Any, place: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        orders.to_bytes(value)
    assert place in str(caught.value)


def test_value_is_not_checked_when_it_is_read(orders: JsonSchemaValues) -> None:
    assert orders.from_bytes(b'{"more": 1}') == {"more": 1}


@pytest.mark.parametrize("data", [b"", b"{", b'"\xff"', b"[" * 100_000])
def test_bytes_that_are_no_json(orders: JsonSchemaValues, data: bytes) -> None:
    with pytest.raises(UnreadableBytes, match="no JSON"):
        orders.from_bytes(data)


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(InvalidValue, match="surrogate"):
        JsonSchemaValues("{}", {}).to_bytes("\ud800")


def test_endless_nesting_is_refused() -> None:
    value: Any = 1
    for _ in range(100_000):
        value = [value]
    with pytest.raises(InvalidValue, match="nested too deeply"):
        JsonSchemaValues('{"items": {"$ref": "#"}}', {}).to_bytes(value)


@pytest.mark.parametrize("text", ["", "1", '{"$ref": "unknown.json"}'])
def test_text_that_is_no_schema(text: str) -> None:
    with pytest.raises(InvalidSchema):
        JsonSchemaValues(text, {})
