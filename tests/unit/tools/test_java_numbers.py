"""Numbers are printed as Java prints them."""

import math
import struct

import pytest

from kaspar.tools.java_numbers import format_double, format_float


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1024.0, "1024.0"),
        (0.5, "0.5"),
        (0.001, "0.001"),
        (0.00095, "9.5E-4"),
        (1.5e-7, "1.5E-7"),
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


def test_floats_have_few_digits() -> None:
    (third,) = struct.unpack(">f", struct.pack(">f", 1 / 3))
    assert format_float(third) == "0.33333334"
    assert format_float(struct.unpack(">f", struct.pack(">f", 3.4e38))[0]) == "3.4E38"
