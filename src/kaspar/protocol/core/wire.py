"""The primitive types of Kafka's protocol, read from and written to bytes. Part of the compiled core.

Rules: nothing is read outside the buffer; nothing is allocated on the word of a length before the bytes that it
promises are known to be there; whatever is not as the protocol says is MalformedBytes. "Compact" is the form of
flexible versions: lengths are unsigned varints of the length plus one, with zero for null.
"""

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Self
from uuid import UUID

import cython

from kaspar.base.errors import MalformedBytes, TooManyElements

Buffer = bytes | bytearray | memoryview

# Of all arrays of a message together. The largest request of the largest cluster is far below it, and what a stranger
# fills a frame with costs no more than some hundred megabytes and a second.
MAX_ELEMENTS = 1 << 20
MAX_STRING_BYTES = 0x7FFF
MAX_UVARINT = 0xFFFF_FFFF
_FLOAT64 = struct.Struct(">d")
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")


# Compiled code keeps the interpreter until it says otherwise. After so many elements other threads, the broker's event
# loop above all, may have it.
GIVE_WAY_EVERY = 256


@cython.ccall
def give_way() -> None:
    with cython.nogil:
        pass


@lru_cache(maxsize=16384)
def uuid_of(raw: bytes) -> UUID:
    """An id from its 16 bytes. Making one takes a microsecond, and the same ids come again and again."""
    return UUID(bytes=raw)


@cython.final
@cython.cclass
class Reader:
    """Reads one value after the other from a buffer, which it only borrows."""

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
        """Where the next `count` bytes start; the position moves behind them."""
        start: cython.Py_ssize_t = self.position
        if count > self.end - start:
            raise MalformedBytes(f"{count} bytes are needed at position {start} and {self.end - start} are left")
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
        value: cython.int = self.uint16()
        return value - 0x1_0000 if value >= 0x8000 else value

    @cython.ccall
    @cython.exceptval(check=True)
    def uint16(self) -> cython.int:
        at: cython.Py_ssize_t = self._take(2)
        high: cython.int = self.view[at]
        low: cython.int = self.view[at + 1]
        return (high << 8) | low

    @cython.ccall
    @cython.exceptval(check=True)
    def int32(self) -> cython.longlong:
        value: cython.longlong = self.uint32()
        return value - 0x1_0000_0000 if value >= 0x8000_0000 else value

    @cython.ccall
    @cython.exceptval(check=True)
    def uint32(self) -> cython.longlong:
        at: cython.Py_ssize_t = self._take(4)
        value: cython.longlong = self.view[at]
        value = (value << 8) | self.view[at + 1]
        value = (value << 8) | self.view[at + 2]
        last: cython.longlong = self.view[at + 3]
        return (value << 8) | last

    @cython.ccall
    @cython.exceptval(check=True)
    def int64(self) -> cython.longlong:
        high: cython.longlong = self.int32()
        return high * 0x1_0000_0000 + self.uint32()

    def float64(self) -> float:
        value: float = self.fixed(_FLOAT64)[0]
        return value

    def fixed(self, layout: struct.Struct) -> tuple[Any, ...]:
        """Several values of fixed size at once, which is faster than one by one."""
        at: cython.Py_ssize_t = self._take(layout.size)
        return layout.unpack_from(self.source, at)

    def uuid(self) -> UUID:
        return uuid_of(self._octets(16))

    @cython.ccall
    @cython.exceptval(check=True)
    def uvarint(self) -> cython.longlong:
        """At most five bytes, at most 32 bits."""
        value: cython.longlong = 0
        shift: cython.int = 0
        byte: cython.longlong
        while shift < 35:
            byte = self.view[self._take(1)]
            value = value | ((byte & 0x7F) << shift)
            if byte < 0x80:
                if value > MAX_UVARINT:
                    break
                return value
            shift += 7
        raise MalformedBytes(f"the varint that ends before position {self.position} is longer than 32 bits")

    @cython.ccall
    @cython.exceptval(check=True)
    def bytes_length(self, compact: cython.bint) -> cython.longlong:
        """The length before bytes or records: -1 is null. The bytes are known to be there."""
        length: cython.longlong = self.uvarint() - 1 if compact else self.int32()
        if length < -1 or length > self.end - self.position:
            raise MalformedBytes(f"a length of {length} before {self.end - self.position} bytes")
        return length

    @cython.ccall
    @cython.exceptval(check=True)
    def array_length(self, compact: cython.bint, smallest: cython.Py_ssize_t) -> cython.longlong:
        """The number of an array's elements, of which the smallest takes that many bytes: -1 is null."""
        count: cython.longlong = self.uvarint() - 1 if compact else self.int32()
        if count < -1 or count * smallest > self.end - self.position:
            raise MalformedBytes(f"an array of {count} elements in {self.end - self.position} bytes")
        self._count(count)
        return count

    @cython.cfunc
    @cython.exceptval(check=True)
    def _count(self, elements: cython.longlong) -> cython.int:
        """What is about to be read counts against the whole message's limit."""
        if elements > self.elements_left:
            raise TooManyElements("a message with more elements than any client sends")
        if elements > 0:
            self.elements_left -= elements
            self.uninterrupted += elements
            if self.uninterrupted >= GIVE_WAY_EVERY:
                self.uninterrupted = 0
                give_way()
        return 0

    def filled_array_length(self, compact: cython.bint, smallest: cython.Py_ssize_t) -> int:
        """The number of elements of an array that may not be null."""
        count: cython.longlong = self.array_length(compact, smallest)
        if count < 0:
            raise MalformedBytes(f"a null array before position {self.position}, where null may not be")
        return count

    @cython.cfunc
    def _octets(self, length: cython.Py_ssize_t) -> bytes:
        start: cython.Py_ssize_t = self._take(length)
        if cython.compiled:  # straight from memory: a slice of the source would be another object, as dear as the copy
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
            raise MalformedBytes(f"a string of {length} bytes, and {MAX_STRING_BYTES} is the most")
        raw: bytes = self._octets(length)
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            start: cython.Py_ssize_t = self.position - length
            raise MalformedBytes(f"the string at position {start} is not UTF-8: {error.reason}") from None

    def string(self, compact: cython.bint) -> str:
        text = self.nullable_string(compact)
        if text is None:
            raise MalformedBytes(f"a null string before position {self.position}, where null may not be")
        return text

    def nullable_bytes(self, compact: cython.bint) -> bytes | None:
        length: cython.longlong = self.bytes_length(compact)
        return None if length < 0 else self._octets(length)

    def nullable_records(self, compact: cython.bint) -> bytes | memoryview | None:
        """Record batches: as bytes, or where they lie in the buffer if whoever reads it keeps it."""
        length: cython.longlong = self.bytes_length(compact)
        if length < 0:
            return None
        if not self.records_in_place:
            return self._octets(length)
        start: cython.Py_ssize_t = self._take(length)
        return memoryview(self.source)[start : start + length]

    def tagged_fields(self) -> Sequence[tuple[int, int, int]]:
        """The tagged fields of a struct as (tag, start, end), ordered by tag; the position moves behind them."""
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
                raise MalformedBytes(f"the tagged field {tag} comes after {previous}")
            size = self.uvarint()
            start = self._take(size)
            found.append((tag, start, start + size))
            previous = tag
        return found

    def part(self, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> Self:
        """A reader of one part alone, such as a tagged field."""
        reader = type(self)(self.source, start, self.elements_left)
        reader.end = end
        return reader

    def expect_end(self) -> None:
        if self.position != self.end:
            raise MalformedBytes(f"{self.end - self.position} bytes too many at position {self.position}")


@cython.ccall
def write_uvarint(out: bytearray, value: cython.longlong) -> None:
    while value >= 0x80:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)


@cython.ccall
def write_array_length(out: bytearray, count: cython.longlong, compact: cython.bint) -> None:
    """The length before an array, bytes or records: -1 for null."""
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
        raise ValueError(f"a string of {len(encoded)} bytes, and {MAX_STRING_BYTES} is the most")
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
    """The tagged fields at the end of a Produce or Fetch response: where the leaders that it names are."""
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
