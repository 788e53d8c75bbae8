"""JSON is read within bounds, and written as Jackson writes it."""

import pytest

from kaspar.schemas.jackson import MAX_DEPTH, MAX_DIGITS
from kaspar.schemas.json_schema.text import read_json, write_json
from kaspar.schemas.schema import InvalidSchema


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ('{ "b" : 1 , "a" : [ true , null ] }', '{"b":1,"a":[true,null]}'),
        ("1.50", "1.50"),
        ("1e5", "1E+5"),
        ("-0.0", "0.0"),
        ("-0", "0"),
        ("0.000001", "0.000001"),
        ("0.0000001", "1E-7"),
        ("1E400", "1E+400"),
        ("123456789012345678901234567890.10", "123456789012345678901234567890.10"),
        (r'"\u001f\u0008\n\/\"\\\u00e9"', '"\\u001F\\b\\n/\\"\\\\é"'),
        (r'"\ud83d\ude00"', '"\U0001f600"'),
    ],
)
def test_text_is_written_as_jackson_writes_it(text: str, written: str) -> None:
    assert write_json(read_json(text)) == written


def test_sorted_keys_have_the_order_of_javas_strings() -> None:
    value = read_json('{"b": {"z": 1, "y": [{"d": 1, "c": 2}]}, "\\uffff": 1, "\\ud83d\\ude00": 2, "B": 3}')
    assert write_json(value, sort_keys=True) == '{"B":3,"b":{"y":[{"c":2,"d":1}],"z":1},"\U0001f600":2,"\uffff":1}'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("{} {}", "not JSON"),
        ("NaN", "NaN is not a value"),
        ("[-Infinity]", "-Infinity is not a value"),
        ('{"a": 1, "b": 2, "a": 3}', "two members 'a'"),
        (r'{"x": "\ud800"}', "half of a surrogate pair"),
        (r'{"\udfff": 1}', "half of a surrogate pair"),
        ("9" * (MAX_DIGITS + 1), "a number of 1001 characters"),
        ("0." + "9" * MAX_DIGITS, "a number of 1002 characters"),
        ("1e99999999999999999999", "The exponent"),
        ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), "nested deeper"),
        ("[" * 100_000, "nested deeper"),
        ('{"a":' * 50_000 + "1" + "}" * 50_000, "nested deeper"),
        (" " * 2_000_001, "characters"),
    ],
)
def test_hostile_text_is_refused_with_a_sentence(text: str, problem: str) -> None:
    with pytest.raises(InvalidSchema, match=problem):
        read_json(text)


def test_text_may_be_as_deep_as_allowed() -> None:
    text = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert write_json(read_json(text)) == text
