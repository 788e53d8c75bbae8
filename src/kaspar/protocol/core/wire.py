"""Reads and writes the primitive types of Kafka's protocol. Part of the compiled core.

Rules: nothing is read outside the buffer; no length is trusted before its bytes are known to be there, so nothing is
allocated for bytes that were not sent; a violation of the protocol raises MalformedBytes. "Compact" is the encoding of
flexible versions: lengths are unsigned varints of the length plus one, and zero is null.
"""

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Self
from uuid import UUID

import cython

from kaspar.base.errors import MalformedBytes, TooManyElements
from kaspar.base.primitives import Octets

if cython.compiled:
    from cython.cimports.kaspar.base import primitives
else:
    from kaspar.base import primitives

Buffer = Octets

# The limit for the elements of all arrays of a message together. The largest request of the largest cluster has far
# fewer, and a malicious frame costs at most a few hundred megabytes and a second.
MAX_ELEMENTS = 1 << 20
MAX_STRING_BYTES = 0x7FFF
_MAX_UVARINT = cython.declare(cython.longlong, 0xFFFF_FFFF)
_FLOAT64 = struct.Struct(">d")
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")


# Compiled code keeps the GIL until it releases it. After this many elements other threads, above all the broker's event
# loop, get a chance to run.
RELEASE_GIL_EVERY = 256


@cython.ccall
def release_gil() -> None:
    with cython.nogil:
        pass


@lru_cache(maxsize=16384)
def uuid_of(raw: bytes) -> UUID:
    """Create an id from its 16 bytes. That takes a microsecond, and the same ids occur again and again."""
    return UUID(bytes=raw)


@cython.final
@cython.cclass
class Reader:
    """Reads one value after the other from a buffer, which it does not copy."""

    source: Any
    view = cython.declare(cython.const[cython.uchar][::1])
    position = cython.declare(cython.Py_ssize_t, visibility="public")
    end = cython.declare(cython.Py_ssize_t, visibility="public")
    elements_left = cython.declare(cython.longlong, visibility="public")
    records_in_place = cython.declare(cython.bint, visibility="public")
    uninterrupted = cython.declare(cython.longlong)

    def __init__(
        self,
        buffer: Buffer,
        position: cython.Py_ssize_t = 0,
        max_elements: cython.longlong = MAX_ELEMENTS,
        records_in_place: cython.bint = False,
    ) -> None:
        self.source = buffer
        self.view = buffer
        self.end = len(self.view)
        if position < 0 or position > self.end:
            raise ValueError(f"position {position} is outside a buffer of {self.end} bytes")
        self.position = position
        self.elements_left = max_elements
        self.records_in_place = records_in_place
        self.uninterrupted = 0

    @cython.cfunc
    @cython.exceptval(-1)
    def _take(self, count: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Return where the next `count` bytes start, and move the position after them."""
        start: cython.Py_ssize_t = self.position
        if count > self.end - start:
            raise MalformedBytes(f"{count} bytes are needed at position {start}, but {self.end - start} are left")
        self.position = start + count
        return start

    @cython.ccall
    @cython.exceptval(check=True)
    def int8(self) -> cython.int:
        value: cython.int = self.view[self._take(1)]
        return value - 0x100 if value >= 0x80 else value

    def boolean(self) -> bool:
        value: cython.int = self.view[self._take(1)]
        return value != 0

    @cython.ccall
    @cython.exceptval(check=True)
    def int16(self) -> cython.int:
        return primitives.read_int16(self.view, self._take(2))

    @cython.ccall
    @cython.exceptval(check=True)
    def uint16(self) -> cython.int:
        return primitives.read_int16(self.view, self._take(2)) & 0xFFFF

    @cython.ccall
    @cython.exceptval(check=True)
    def int32(self) -> cython.longlong:
        return primitives.read_int32(self.view, self._take(4))

    @cython.ccall
    @cython.exceptval(check=True)
    def uint32(self) -> cython.longlong:
        return primitives.read_uint32(self.view, self._take(4))

    @cython.ccall
    @cython.exceptval(check=True)
    def int64(self) -> cython.longlong:
        return primitives.read_int64(self.view, self._take(8))

    def float64(self) -> float:
        value: float = self.fixed(_FLOAT64)[0]
        return value

    def fixed(self, layout: struct.Struct) -> tuple[Any, ...]:
        """Read several values of fixed size at once, which is faster than one by one."""
        at: cython.Py_ssize_t = self._take(layout.size)
        return layout.unpack_from(self.source, at)

    def uuid(self) -> UUID:
        return uuid_of(self._octets(16))

    @cython.ccall
    @cython.exceptval(check=True)
    def uvarint(self) -> cython.longlong:
        """Read an unsigned varint of at most five bytes and at most 32 bits."""
        varint: cython.longlong = primitives.read_varint(self.view, self.position, self.end)
        value: cython.longlong = primitives.unsigned_varint_value(varint)
        if value < 0 or value > _MAX_UVARINT:
            raise MalformedBytes(f"the varint at position {self.position} is cut off or longer than 32 bits")
        self.position += primitives.varint_size(varint)
        return value

    @cython.ccall
    @cython.exceptval(check=True)
    def bytes_length(self, compact: cython.bint) -> cython.longlong:
        """The length before bytes or records, which are known to be in the buffer. -1 is null."""
        length: cython.longlong = self.uvarint() - 1 if compact else self.int32()
        if length < -1 or length > self.end - self.position:
            raise MalformedBytes(f"a length of {length} before {self.end - self.position} bytes")
        return length

    @cython.ccall
    @cython.exceptval(check=True)
    def array_length(self, compact: cython.bint, smallest: cython.Py_ssize_t) -> cython.longlong:
        """The number of elements of an array, each of at least `smallest` bytes. -1 is null."""
        count: cython.longlong = self.uvarint() - 1 if compact else self.int32()
        if count < -1 or count * smallest > self.end - self.position:
            raise MalformedBytes(f"an array of {count} elements in {self.end - self.position} bytes")
        self._count(count)
        return count

    @cython.cfunc
    @cython.exceptval(check=True)
    def _count(self, elements: cython.longlong) -> cython.int:
        """Count elements against the limit of the whole message."""
        if elements > self.elements_left:
            raise TooManyElements("the message has too many array elements")
        if elements > 0:
            self.elements_left -= elements
            self.uninterrupted += elements
            if self.uninterrupted >= RELEASE_GIL_EVERY:
                self.uninterrupted = 0
                release_gil()
        return 0

    def filled_array_length(self, compact: cython.bint, smallest: cython.Py_ssize_t) -> int:
        """The number of elements of an array that is not nullable."""
        count: cython.longlong = self.array_length(compact, smallest)
        if count < 0:
            raise MalformedBytes(f"the array before position {self.position} is null, but not nullable")
        return count

    @cython.cfunc
    def _octets(self, length: cython.Py_ssize_t) -> bytes:
        start: cython.Py_ssize_t = self._take(length)
        if (
            cython.compiled
        ):  # directly from memory: a slice of the source would be another object, as expensive as the copy
            return cython.cast(cython.p_char, cython.address(self.view[0]))[start : start + length]
        return bytes(self.source[start : start + length])

    @cython.ccall
    def nullable_string(self, compact: cython.bint) -> str | None:
        length: cython.longlong = self.uvarint() - 1 if compact else self.int16()
        if length < 0:
            if length < -1:
                raise MalformedBytes(f"a string of length {length}")
            return None
        if length > MAX_STRING_BYTES:
            raise MalformedBytes(f"a string of {length} bytes exceeds the limit of {MAX_STRING_BYTES}")
        raw: bytes = self._octets(length)
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            start: cython.Py_ssize_t = self.position - length
            raise MalformedBytes(f"the string at position {start} is not UTF-8: {error.reason}") from None

    def string(self, compact: cython.bint) -> str:
        text = self.nullable_string(compact)
        if text is None:
            raise MalformedBytes(f"the string before position {self.position} is null, but not nullable")
        return text

    def nullable_bytes(self, compact: cython.bint) -> bytes | None:
        length: cython.longlong = self.bytes_length(compact)
        return None if length < 0 else self._octets(length)

    def nullable_records(self, compact: cython.bint) -> bytes | memoryview | None:
        """Read record batches, as bytes or, if the caller requested records in place, as a view of the buffer."""
        length: cython.longlong = self.bytes_length(compact)
        if length < 0:
            return None
        if not self.records_in_place:
            return self._octets(length)
        start: cython.Py_ssize_t = self._take(length)
        return memoryview(self.source)[start : start + length]

    def tagged_fields(self) -> Sequence[tuple[int, int, int]]:
        """The tagged fields of a struct as (tag, start, end), ordered by tag. Moves the position after them."""
        count: cython.longlong = self.uvarint()
        if count == 0:
            return ()
        if count * 2 > self.end - self.position:
            raise MalformedBytes(f"{count} tagged fields in {self.end - self.position} bytes")
        self._count(count)
        found = []
        previous: cython.longlong = -1
        tag: cython.longlong
        size: cython.longlong
        start: cython.Py_ssize_t
        for _ in range(count):
            tag = self.uvarint()
            if tag <= previous:
                raise MalformedBytes(f"tagged field {tag} follows {previous}")
            size = self.uvarint()
            start = self._take(size)
            found.append((tag, start, start + size))
            previous = tag
        return found

    def part(self, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> Self:
        """Create a reader of one part of the buffer, such as a tagged field."""
        reader = type(self)(self.source, start, self.elements_left)
        reader.end = end
        return reader

    def expect_end(self) -> None:
        if self.position != self.end:
            raise MalformedBytes(f"{self.end - self.position} unexpected bytes at position {self.position}")


@cython.ccall
def write_uvarint(out: bytearray, value: cython.longlong) -> None:
    while value >= 0x80:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)


@cython.ccall
def write_array_length(out: bytearray, count: cython.longlong, compact: cython.bint) -> None:
    """Write the length before an array, bytes or records: -1 for null."""
    if compact:
        write_uvarint(out, count + 1)
    else:
        out += _INT32.pack(count)


def write_string(out: bytearray, text: str | None, compact: cython.bint) -> None:
    if text is None:
        out += b"\0" if compact else b"\xff\xff"
        return
    encoded: bytes = text.encode()
    if len(encoded) > MAX_STRING_BYTES:
        raise ValueError(f"a string of {len(encoded)} bytes exceeds the limit of {MAX_STRING_BYTES}")
    if compact:
        write_uvarint(out, len(encoded) + 1)
    else:
        out += _INT16.pack(len(encoded))
    out += encoded


def write_bytes(out: bytearray, value: Buffer | None, compact: cython.bint) -> None:
    if value is None:
        out += b"\0" if compact else b"\xff\xff\xff\xff"
        return
    write_array_length(out, len(value), compact)
    out += value


def write_node_endpoints(out: bytearray, endpoints: Sequence[tuple[int, str, int, str | None]]) -> None:
    """Write the tagged fields at the end of a Produce or Fetch response: the endpoints of the leaders in it."""
    if not endpoints:
        out.append(0)
        return
    content = bytearray()
    write_uvarint(content, len(endpoints) + 1)
    for node_id, host, port, rack in endpoints:
        content += _INT32.pack(node_id)
        write_string(content, host, True)
        content += _INT32.pack(port)
        write_string(content, rack, True)
        content.append(0)
    out += b"\x01\x00"  # one tagged field, with the tag 0
    write_uvarint(out, len(content))
    out += content
