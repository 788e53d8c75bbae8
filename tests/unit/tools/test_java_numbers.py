"""Numbers are printed as Java's Double.toString does."""

import math

import pytest

from kaspar.tools.java_numbers import format_double


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (1024.0, "1024.0"),
        (0.5, "0.5"),
        (0.001, "0.001"),
        (0.00095, "9.5E-4"),
        (9999999.0, "9999999.0"),
        (10000000.0, "1.0E7"),
        (12345678.9, "1.23456789E7"),
        (-3e10, "-3.0E10"),
        (1e300, "1.0E300"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (math.nan, "NaN"),
    ],
)
def test_doubles(value: float, text: str) -> None:
    assert format_double(value) == text
