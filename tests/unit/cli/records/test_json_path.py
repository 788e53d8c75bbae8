"""The part of JSONPath that commands know."""

from typing import Any

import pytest

from kaspar.cli.records.json_path import parse_json_path

ORDER: dict[str, Any] = {
    "customer": {"id": 7, "first name": "Ada", "price": 0},
    "items": [{"price": 1}, {"price": 2, "parts": [{"price": 3}]}, {}],
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("$", [ORDER]),
        ("$.customer.id", [7]),
        ("customer.id", [7]),
        ("$['customer']['first name']", ["Ada"]),
        ('$.customer["first name"]', ["Ada"]),
        ("$.items[0].price", [1]),
        ("$.items[-1]", [{}]),
        ("$.items[*].price", [1, 2]),
        ("$.customer.*", [7, "Ada", 0]),
        ("$..price", [0, 1, 2, 3]),
        ("$..parts[0].price", [3]),
        ("$..[0].price", [1, 3]),
        ("$.items[9]", []),
        ("$.customer[0]", []),
        ("$.nobody.id", []),
    ],
)
def test_path_leads_to_parts(path: str, expected: list[Any]) -> None:
    assert parse_json_path(path).find(ORDER) == expected


@pytest.mark.parametrize("value", [None, 3, "text", []])
def test_value_without_members_has_no_part(value: Any) -> None:
    assert parse_json_path("$.a").find(value) == []


@pytest.mark.parametrize("path", ["$.", "$.a[", "$.a[x]", "$a", "$.a b", "$.items[?(@.price > 1)]", "$...a"])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="is not a path"):
        parse_json_path(path)


def test_deeply_nested_value_is_searched() -> None:
    value: Any = {"price": 1}
    for _ in range(5_000):
        value = [value]
    assert parse_json_path("$..price").find(value) == [1]
