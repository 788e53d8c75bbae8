"""What filters mean, by tables: a filter, a record, and whether it matches."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kaspar.console.messages.filters import Filter, FilterError
from kaspar.console.messages.filters.evaluating import Evaluation
from kaspar.console.messages.filters.parsing import condition_of

NOW_MS = 1_800_000_000_000
ORDER = {
    "id": 17,
    "amount": 150.5,
    "currency": "EUR",
    "express": True,
    "note": None,
    "items": [{"sku": "a-1", "count": 2}, {"sku": "b-2", "count": 0}],
    "tags": ["new", "vip"],
    "odd name": "x",
    "price": "99.5",
}


@dataclass
class Order:
    """A record as a filter sees it."""

    decoded: Any = field(default_factory=lambda: ORDER)
    named: Any = "eu-1001"
    topic: str = "orders"
    partition: int = 3
    offset: int = 42
    timestamp: int = NOW_MS - 60_000

    def key(self) -> Any:
        return self.named

    def value(self) -> Any:
        return self.decoded

    def headers(self) -> Mapping[str, str | None]:
        return {"trace": "abc-123", "retry-count": "2", "empty": None}

    def texts(self) -> Iterable[str]:
        return (str(self.named), json.dumps(self.decoded), "abc-123")


def matches(text: str, record: Order | None = None, **limits: int) -> bool:
    return Filter(text, now_ms=NOW_MS, **limits).matches(record or Order())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "true",
        "value.amount > 100",
        "value.amount >= 150.5 and value.amount <= 150.5",
        'value.amount > 100 and key startswith "eu-"',
        "value.amount = 150.5",
        "value.amount != 3",
        'key == "eu-1001"',
        "key == 'eu-1001'",
        'key in ["us-1", "eu-1001"]',
        'key not in ["us-1"]',
        '"us" in "bus"',
        'key endswith "1001"',
        'key contains "-10"',
        'not key contains "-11"',
        'key not contains "-11"',
        '! (key contains "-11")',
        'key matches "^eu-[0-9]+$"',
        'key matches "(?i)EU"',
        'key not matches "^us"',
        "topic == 'orders' && partition == 3 && offset in [41, 42]",
        "topic == 'other' || offset == 42",
        "offset % 10 == 2",
        "-offset == -42",
        "offset + 1 * 2 == 44",
        "(offset + 1) * 2 == 86",
        "offset - 1 - 1 == 40",
        "offset / 4 == 10.5",
        "value.express",
        "value.express == true",
        "value.note == null",
        "value.note is null",
        "value.amount is not null",
        "value.missing is null",
        "value.missing.deeper[3].still is null",
        "value.items[0].sku == 'a-1'",
        "value.items[-1].sku == 'b-2'",
        "value.items[*].sku == 'b-2'",
        "'b-2' in value.items[*].sku",
        "value.items[*].sku startswith 'a'",
        "value.items[*].count > 1",
        "$.items[*].sku matches '^b'",
        "$.tags contains 'vip'",
        "'vip' in $.tags",
        '$["odd name"] == "x"',
        "'amount' in value",
        "len(value.items) == 2",
        "len(key) == 7",
        "lower(value.currency) == 'eur'",
        "upper(key) == 'EU-1001'",
        "number(value.price) == 99.5",
        "value.price > 99",
        "value.price == 99.5",
        "value.id == '17'",
        "abs(0 - offset) == 42",
        "text(value.id) startswith '1'",
        "headers.trace == 'abc-123'",
        "headers['retry-count'] >= 2",
        "headers.missing is null",
        "headers.empty is null",
        "'trace' in headers",
        "timestamp > now - 5m",
        "timestamp >= now - 60s and timestamp < now",
        "timestamp > 2027-01-01",
        "timestamp < 2027-01-16T00:00:00+01:00",
        "timestamp > 2027-01-15T07:58:59.999Z",
        '"EUR"',
        '"eur"',
        "'ABC-123'",
        '"vip" and not "nothing like it"',
        '("vip")',
        'value.currency == "\\u0045UR"',
        "not not true",
    ],
)
def test_filter_matches(text: str) -> None:
    assert matches(text)


@pytest.mark.parametrize(
    "text",
    [
        "false",
        "null",
        "value.amount > 200",
        "value.currency > 100",
        "value.currency < 100",
        "value.missing > 0",
        "value.missing < 0",
        "value.missing == 0",
        "value.note == false",
        "value.express == 1",
        "value.items == 2",
        "value.items[7].sku == 'a-1'",
        "value.items[*].sku == 'c'",
        "value.items[*].sku != 'a-1'",
        "value.items[*].nothing > 0",
        "value.currency.deeper == 'E'",
        "offset / 0 == 1",
        "offset % 0 == 0",
        "value.currency + 1 == 1",
        "value.currency * 3 is not null",
        "-value.currency is not null",
        "len(value.amount) is not null",
        "lower(value.missing) == 'null'",
        "value.missing startswith ''",
        "value.missing contains ''",
        "value.missing matches '.*'",
        "number('1_000') == 1000",
        "key matches '^1001'",
        '"nothing like it"',
        "timestamp > now",
        "not true",
        "true and false",
        "false or false",
        "key in []",
    ],
)
def test_filter_does_not_match(text: str) -> None:
    assert not matches(text)


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("value.amount >", 15, "ends where a value"),
        ("value.amount > > 3", 16, "A value is expected here, not `>`"),
        ("amount > 3", 1, "A record has no field `amount`"),
        ("error", 1, "Put text to search for in quotes"),
        ("value.amount 3", 14, "join conditions with `and` or `or`"),
        ("(value.amount > 3", 18, "`)` is expected here, but the filter ends"),
        ("value. > 3", 8, "A dot must be followed by a name"),
        ("value[key]", 7, "Brackets must contain"),
        ("value[1.5]", 7, "Brackets must contain"),
        ("value[", 7, "Brackets must contain"),
        ("1 < 2 < 3", 7, "cannot be chained"),
        ("key == 'abc", 8, "no closing '"),
        ("key == 'a\\q'", 10, "is not an escape sequence"),
        ("key == '\\u12'", 9, "four hexadecimal digits"),
        ("key # 3", 5, "Unexpected character '#'"),
        ("key == 3x", 8, "durations end with"),
        ("timestamp > 2026-13-45", 13, "is not a valid date or time"),
        ("key matches key", 13, "needs a pattern in quotes"),
        ("key matches '('", 13, "Invalid RE2 pattern"),
        ("key matches '(a)\\\\1'", 13, "Invalid RE2 pattern"),
        ("key is 3", 8, "followed by `null`"),
        ("len key", 5, "`(` is expected"),
        ("and", 1, "A value is expected here, not `and`"),
        ("__import__('os')", 1, "A record has no field `__import__`"),
        ("value.__class__()", 16, "join conditions with `and` or `or`"),
        ("9" * 31, 1, "at most 30 digits"),
        ("(" * 31 + "1", 31, "nested at most 30 levels deep"),
        ("not " * 31 + "true", 121, "nested at most 30 levels deep"),
        ("-" * 40 + "1", 32, "nested at most 30 levels deep"),
        ("x" * 2001, 2001, "at most 2,000 characters"),
    ],
)
def test_error_points_at_the_column(text: str, column: int, words: str) -> None:
    with pytest.raises(FilterError) as caught:
        Filter(text, now_ms=NOW_MS)
    assert caught.value.column == column
    assert words in caught.value.message


def test_double_underscore_names_are_only_names_of_fields() -> None:
    assert matches("value.__class__ == 'x'", Order({"__class__": "x"}))
    assert not matches("value.__class__ is not null")


def test_a_text_that_looks_like_a_number_is_still_compared_as_a_text_with_texts() -> None:
    assert not matches("key == '7'", Order(named="007"))
    assert matches("key == 7", Order(named="007"))


def test_a_record_that_takes_too_many_steps_does_not_match_and_is_counted() -> None:
    wide = Order({"items": [{"n": n} for n in range(6_000)]})
    costly = Filter("value.items[*].n == 5999", now_ms=NOW_MS)
    assert not costly.matches(wide)
    assert costly.undecided == 1
    assert costly.matches(Order({"items": [{"n": 5999}]}))
    assert costly.undecided == 1


def test_large_texts_cost_steps() -> None:
    large = Order("x" * 5_000_000)
    assert matches("len(value) == 5000000", large)
    assert not matches(" and ".join(["lower(value) contains 'x'"] * 10), large)


@pytest.mark.parametrize(
    "text",
    [
        "text(value) contains 'x'",
        "value startswith '{'",
        "value matches 'x'",
        "value.a == value.b",
        "[value.a] contains value.b",
        "not text(value)",
    ],
)
def test_all_that_is_within_a_value_costs_steps(text: str) -> None:
    deep = Order({name: [[[n]] for n in range(5_000)] for name in "ab"})
    chosen = Filter(text, now_ms=NOW_MS)
    assert not chosen.matches(deep)
    assert chosen.undecided == 1


@pytest.mark.parametrize("text", ["value is not null", "'a' in value", "len(value) == 1", "value != 'x'", "value"])
def test_what_does_not_look_into_a_value_costs_nothing_for_what_is_within(text: str) -> None:
    deep = Order({"a": [[[n]] for n in range(20_000)]})
    assert matches(text, deep)


def test_headers_cost_steps() -> None:
    @dataclass
    class Headed(Order):
        def headers(self) -> Mapping[str, str | None]:
            return {str(n): None for n in range(3_000)}

    assert matches("'7' in headers", Headed())
    assert not matches("'a' in headers or 'b' in headers or 'c' in headers or '7' in headers", Headed())


LONG = int("9" * 4_000)


@pytest.mark.parametrize(
    "text",
    [
        "value.n == value.n",
        "text(value.n) startswith '999'",
        "text(value) contains '999'",
        "value.n > 1e300",
        "-value.n < 0",
        "value.n * value.n is null",  # no float is as large
        "not text(value.n * value.n) contains '1'",
        f"{'9' * 30} * {'9' * 30} == {'9' * 30} * {'9' * 30} + 0",
        f"{' * '.join(['9' * 30] * 5)} > 1e149",
    ],
)
def test_no_integer_of_a_record_makes_a_filter_fail(text: str) -> None:
    assert matches(text, Order({"n": LONG}))


def test_products_do_not_grow_without_limit() -> None:
    number = 2**200
    product = Evaluation(Order({"n": number}), NOW_MS)._value(condition_of("*".join(["value.n"] * 5)))
    assert product == pytest.approx(2.0**1000)
    assert isinstance(product, float)


def test_long_integers_cost_steps() -> None:
    chosen = Filter("text(value[*]) contains 'x'", now_ms=NOW_MS)
    assert not chosen.matches(Order([LONG] * 250))
    assert chosen.undecided == 1


def test_a_chain_of_operators_is_no_deeper_than_one() -> None:
    assert matches("+".join("1" * 900) + " == 900")
    assert matches(" or ".join(["false"] * 200 + ["true"]))
    assert not matches("value" + ".a" * 900)


def test_filters_of_the_documentation_are_filters() -> None:
    page = (Path(__file__).parents[4] / "docs" / "console-filters.md").read_text()
    examples = re.findall(r"^\| `(.*?)` \|", page.partition("## Examples")[2].partition("## Limits")[0], re.MULTILINE)
    assert len(examples) >= 8
    for text in examples:
        Filter(text, now_ms=NOW_MS).matches(Order())
