"""Kafka's primitive types as bytes: integers with the most significant byte first, varints and varlongs.

An inlined module: setup.py derives a Cython declaration file from it, and the compiled modules cimport these functions
as inline C functions. Interpreted code calls the functions below. Both must give the same results, so every parameter,
result and variable has a C type, numbers that wrap around in C are masked, and nothing raises. Callers check bounds.

`read_varint` returns the bits of the varint, shifted left by three, and in the lowest three bits its size in bytes; -1
if the varint is cut off or longer than five bytes. `varint_size`, `varint_value` and `unsigned_varint_value` extract
the parts. A varlong is read in two steps, since 64 bits leave no room for a size: `varlong_size`, then `read_varlong`.
"""

from typing import TypeAlias

import cython

Octets: TypeAlias = bytes | bytearray | memoryview
"""Bytes to be read. A memoryview must be contiguous and of single unsigned bytes."""

WritableOctets: TypeAlias = bytearray | memoryview


# --- Integers ---------------------------------------------------------------------------------------------------------


def read_int16(data: Octets, position: cython.Py_ssize_t) -> cython.longlong:
    number: cython.longlong = (data[position] << 8) | data[position + 1]
    return (number ^ 0x8000) - 0x8000


def read_uint32(data: Octets, position: cython.Py_ssize_t) -> cython.longlong:
    number: cython.longlong = 0
    index: cython.int
    for index in range(4):
        number = (number << 8) | data[position + index]
    return number


def read_int32(data: Octets, position: cython.Py_ssize_t) -> cython.longlong:
    sign: cython.longlong = 0x8000_0000
    return (read_uint32(data, position) ^ sign) - sign


def read_int64(data: Octets, position: cython.Py_ssize_t) -> cython.longlong:
    number: cython.ulonglong = 0
    index: cython.int
    for index in range(8):
        number = (number << 8) | data[position + index]
    return wrap_int64(number)


def write_int16(data: WritableOctets, position: cython.Py_ssize_t, number: cython.longlong) -> cython.void:
    data[position] = (number >> 8) & 0xFF
    data[position + 1] = number & 0xFF


def write_int32(data: WritableOctets, position: cython.Py_ssize_t, number: cython.longlong) -> cython.void:
    index: cython.int
    for index in range(4):
        data[position + index] = (number >> (24 - 8 * index)) & 0xFF


def write_int64(data: WritableOctets, position: cython.Py_ssize_t, number: cython.longlong) -> cython.void:
    index: cython.int
    for index in range(8):
        data[position + index] = (number >> (56 - 8 * index)) & 0xFF


def wrap_int64(number: cython.ulonglong) -> cython.longlong:
    """Interpret the lowest 64 bits as a two's complement number."""
    mask: cython.ulonglong = 0xFFFF_FFFF_FFFF_FFFF
    sign: cython.ulonglong = 0x8000_0000_0000_0000
    return ((number & mask) ^ sign) - sign


# --- Varints and varlongs ---------------------------------------------------------------------------------------------


def read_varint(data: Octets, position: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.longlong:
    """Read the varint at `position`, with its size; -1 if it does not end before `end` or within five bytes."""
    raw: cython.longlong
    octet: cython.longlong
    size: cython.int = 1
    if position >= end:
        return -1
    raw = data[position]
    if raw < 0x80:  # most of them
        return (raw << 3) | 1
    raw &= 0x7F
    if end - position > 5:
        end = position + 5
    while position + size < end:
        octet = data[position + size]
        raw |= (octet & 0x7F) << (7 * size)
        size += 1
        if octet < 0x80:
            return (raw << 3) | size
    return -1


def varint_size(varint: cython.longlong) -> cython.Py_ssize_t:
    """How many bytes the varint takes."""
    return varint & 7


def varint_value(varint: cython.longlong) -> cython.longlong:
    """The value as int32. Bits beyond the 32nd are dropped, as in Java."""
    half: cython.longlong = (varint >> 4) & 0x7FFF_FFFF
    return -half - 1 if varint & 8 else half


def unsigned_varint_value(varint: cython.longlong) -> cython.longlong:
    """The value without a sign, of up to 35 bits; -1 if there was no varint."""
    return varint >> 3


def varlong_size(data: Octets, position: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """How many bytes the varlong at `position` takes; 0 if it does not end before `end` or within ten bytes."""
    size: cython.Py_ssize_t = 0
    if end - position > 10:
        end = position + 10
    while position + size < end:
        size += 1
        if data[position + size - 1] < 0x80:
            return size
    return 0


def read_varlong(data: Octets, position: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.longlong:
    """Read the int64 from a varlong of `size` bytes."""
    raw: cython.ulonglong = 0
    octet: cython.ulonglong
    index: cython.Py_ssize_t
    for index in range(size):
        octet = data[position + index]
        raw |= (octet & 0x7F) << (7 * index)
    return decode_zigzag(raw)


def decode_zigzag(raw: cython.ulonglong) -> cython.longlong:
    """The signed number that the bits of a varint or varlong represent."""
    mask: cython.ulonglong = 0xFFFF_FFFF_FFFF_FFFF
    raw &= mask
    return wrap_int64((raw >> 1) ^ (0 - (raw & 1)))


def size_of_varlong(number: cython.longlong) -> cython.Py_ssize_t:
    """How many bytes the number takes as a varlong, or, if it is an int32, as a varint."""
    mask: cython.ulonglong = 0xFFFF_FFFF_FFFF_FFFF
    raw: cython.ulonglong = ((number << 1) ^ (number >> 63)) & mask
    size: cython.Py_ssize_t = 1
    while raw > 0x7F:
        raw >>= 7
        size += 1
    return size


def write_varlong(data: WritableOctets, position: cython.Py_ssize_t, number: cython.longlong) -> cython.Py_ssize_t:
    """Write the number as a varlong, or, if it is an int32, as a varint. Returns the position after it."""
    mask: cython.ulonglong = 0xFFFF_FFFF_FFFF_FFFF
    raw: cython.ulonglong = ((number << 1) ^ (number >> 63)) & mask
    while raw > 0x7F:
        data[position] = (raw & 0x7F) | 0x80
        raw >>= 7
        position += 1
    data[position] = raw
    return position + 1


# --- Bytes ------------------------------------------------------------------------------------------------------------


def copy_bytes(
    target: WritableOctets, at: cython.Py_ssize_t, data: Octets, start: cython.Py_ssize_t, length: cython.Py_ssize_t
) -> cython.void:
    """Copy bytes. This is a separate function so that the C compiler knows that the target's address is constant."""
    index: cython.Py_ssize_t
    for index in range(length):
        target[at + index] = data[start + index]
