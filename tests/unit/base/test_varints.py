"""Varints of code that is not compiled: the same bytes as those of compiled code."""

import pytest

from kaspar.base import primitives
from kaspar.base.varints import from_zigzag, read_uvarint, varlong

NUMBERS = [0, 1, -1, 63, 64, -65, 300, 0x7FFF_FFFF, -0x8000_0000, (1 << 63) - 1, -(1 << 63)]


@pytest.mark.parametrize("number", NUMBERS)
def test_a_varlong_is_written_as_compiled_code_writes_it_and_read_again(number: int) -> None:
    written = bytearray(10)
    end = primitives.write_varlong(written, 0, number)
    encoded = varlong(number)
    assert encoded == written[:end]
    read = read_uvarint(b"." + encoded + b".", 1, 10)
    assert read is not None
    assert (from_zigzag(read[0]), read[1]) == (number, 1 + end)


def test_a_uvarint_that_is_cut_off_or_too_long_is_none() -> None:
    assert read_uvarint(b"", 0, 5) is None
    assert read_uvarint(b"\x80\x80", 0, 5) is None
    assert read_uvarint(b"\x80" * 5 + b"\0", 0, 5) is None
    assert read_uvarint(b"\xff\xff\xff\xff\x7f", 0, 5) == ((1 << 35) - 1, 5)
