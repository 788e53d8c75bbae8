"""Numbers are read and printed as Java does it."""

import math
import struct

import pytest

from kaspar.tools.java_numbers import format_double, format_float, parse_int, parse_long


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


def test_whole_numbers() -> None:
    assert [parse_int(text) for text in ("0", "-1", "+5", "007", "2147483647", "-2147483648")] == [
        *(0, -1, 5, 7),
        *(2147483647, -2147483648),
    ]
    assert [parse_long(text) for text in ("9223372036854775807", "-9223372036854775808")] == [2**63 - 1, -(2**63)]


@pytest.mark.parametrize("text", ["", "-", "1.5", " 1", "1_000", "0x1", "2147483648", "-2147483649", "9" * 5000])
def test_no_whole_numbers_of_32_bits(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a whole number|integer string conversion"):
        parse_int(text)
