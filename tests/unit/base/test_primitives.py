"""Integers and varints as bytes, as interpreted code has them. The compiled modules are compared with this form."""

import struct

import pytest

from kaspar.base import primitives

INT64 = [0, 1, -1, 127, 128, -128, 0x7FFF_FFFF, -0x8000_0000, (1 << 63) - 1, -(1 << 63)]
VARINTS = {0: b"\0", -1: b"\x01", 1: b"\x02", 63: b"\x7e", 64: b"\x80\x01", -65: b"\x81\x01", 300: b"\xd8\x04"}


@pytest.mark.parametrize("number", INT64)
def test_int64_is_written_as_in_java_and_read_again(number: int) -> None:
    data = bytearray(10)
    primitives.write_int64(data, 1, number)
    assert data == b"\0" + struct.pack(">q", number) + b"\0"
    assert primitives.read_int64(data, 1) == number


@pytest.mark.parametrize("number", [0, 1, -1, 0x7FFF, -0x8000])
def test_shorter_integers(number: int) -> None:
    data = bytearray(6)
    primitives.write_int16(data, 0, number)
    primitives.write_int32(data, 2, number)
    assert data == struct.pack(">hi", number, number)
    assert (primitives.read_int16(data, 0), primitives.read_int32(data, 2)) == (number, number)
    assert primitives.read_uint32(data, 2) == number & 0xFFFF_FFFF


@pytest.mark.parametrize(("number", "encoded"), VARINTS.items())
def test_varint(number: int, encoded: bytes) -> None:
    varint = primitives.read_varint(b"." + encoded + b".", 1, 8)
    assert (primitives.varint_value(varint), primitives.varint_size(varint)) == (number, len(encoded))


@pytest.mark.parametrize("number", INT64)
def test_varlong_is_read_as_it_was_written(number: int) -> None:
    data = bytearray(11)
    end = primitives.write_varlong(data, 1, number)
    size = primitives.varlong_size(data, 1, end)
    assert size == end - 1 == primitives.size_of_varlong(number)
    assert primitives.read_varlong(data, 1, size) == number


def test_varint_that_is_cut_off_or_too_long_is_none() -> None:
    assert primitives.read_varint(b"\x80\x80", 0, 2) == -1
    assert primitives.read_varint(b"\x80\x80\x80\x80\x80\x00", 0, 6) == -1
    assert primitives.unsigned_varint_value(-1) == -1
    assert primitives.varlong_size(b"\x80" * 9, 0, 9) == 0
    assert primitives.varlong_size(b"\x80" * 10 + b"\0", 0, 11) == 0


def test_bits_beyond_the_type_are_dropped_as_in_java() -> None:
    assert primitives.varint_value(primitives.read_varint(b"\xfe\xff\xff\xff\x7f", 0, 5)) == 0x7FFF_FFFF
    assert primitives.unsigned_varint_value(primitives.read_varint(b"\xff\xff\xff\xff\x7f", 0, 5)) == (1 << 35) - 1
