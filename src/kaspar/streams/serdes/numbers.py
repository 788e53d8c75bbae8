"""Numbers in Java's format: big endian, of fixed size (Kafka's ShortSerializer to DoubleSerializer)."""

import struct
from typing import Generic, TypeVar

from kaspar.streams.serdes.errors import unreadable, unwritable, wrong_type
from kaspar.streams.serdes.serde import Serde

N = TypeVar("N", int, float)


class _Number(Generic[N]):
    """The serde of one kind of number. Each instance is a constant of this module, and is pickled by its name."""

    __slots__ = ("_constant", "_kind", "_pack", "_unpack", "name", "size")

    def __init__(self, constant: str, layout: str, kind: type[N]) -> None:
        packing = struct.Struct(layout)
        self.name = constant.lower()
        self.size = packing.size
        self._constant = constant
        self._kind: type = kind
        self._pack = packing.pack
        self._unpack = packing.unpack

    def serialize(self, topic: str, value: N | None) -> bytes | None:
        if value is None:
            return None
        try:
            return self._pack(value)
        except (struct.error, OverflowError) as error:
            if isinstance(value, (int, self._kind)):
                advice = f"{value} does not fit into its {self.size} bytes, use a wider serde"
                raise unwritable(self.name, topic, value, advice) from error
            raise wrong_type(self.name, topic, value, self._kind.__name__) from error

    def deserialize(self, topic: str, data: bytes | None) -> N | None:
        if data is None:
            return None
        try:
            number: N = self._unpack(data)[0]
        except struct.error as error:
            raise unreadable(self.name, topic, data, f"its numbers must have {self.size} bytes") from error
        return number

    def __reduce__(self) -> str:
        return self._constant


SHORT = _Number("SHORT", ">h", int)
INTEGER = _Number("INTEGER", ">i", int)
LONG = _Number("LONG", ">q", int)
SINGLE = _Number("SINGLE", ">f", float)
DOUBLE = _Number("DOUBLE", ">d", float)


def short() -> Serde[int]:
    """Integers in 2 bytes: Java's Short."""
    return SHORT


def integer() -> Serde[int]:
    """Integers in 4 bytes: Java's Integer."""
    return INTEGER


def long() -> Serde[int]:
    """Integers in 8 bytes: Java's Long."""
    return LONG


def single() -> Serde[float]:
    """Floating-point numbers in 4 bytes: Java's Float. A number is rounded to that precision."""
    return SINGLE


def double() -> Serde[float]:
    """Floating-point numbers in 8 bytes: Java's Double."""
    return DOUBLE
