"""The notation of JSON that Kafka's commands print."""

import pytest

from kaspar.tools.message_json import java_double, json_line


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"),
        (1024.0, "1024.0"),
        (0.001, "0.001"),
        (1e7, "1.0E7"),
        (-12345678.5, "-1.23456785E7"),
        (1.5e-7, "1.5E-7"),
        (1e300, "1.0E300"),
        (float("inf"), "Infinity"),
    ],
)
def test_floating_point_numbers_are_written_as_in_java(number: float, text: str) -> None:
    assert java_double(number) == text


def test_json_has_no_spaces() -> None:
    assert json_line({"a": [1, None, True, "ü\n"], "b": {"c": 1.0}}) == '{"a":[1,null,true,"ü\\n"],"b":{"c":1.0}}'
