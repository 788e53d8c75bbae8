"""What every decoder is: bytes of one column in, values of one Spark type out, and each row that does not fit named.

A record that cannot be decoded never spoils its neighbours: it is null in the values and has a reason of its own.
A record without bytes (a null key, a tombstone) is null, and not bad.
"""

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql.types import DataType


@dataclass(frozen=True, slots=True)
class Decoded:
    values: pa.Array  # of the Arrow type of the decoder's data_type, as long as what was decoded
    bad: Mapping[int, str] = field(default_factory=dict)  # why a row could not be decoded; such a row is null


class Decoder(Protocol):
    @property
    def data_type(self) -> DataType:
        """The type of the column in Spark."""

    def decode(self, column: pa.BinaryArray) -> Decoded: ...


@contextmanager
def collector_paused() -> Iterator[None]:
    """Values that are made one by one are all kept until they are in their column: a collector that looks through them
    again and again finds nothing, and takes as long as the decoding itself."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def rows_refused(accepts: Callable[[int, int], bool], start: int, end: int) -> list[int]:
    """The rows in start..end that `accepts` refuses, by halving what it refuses as a whole."""
    if start == end or accepts(start, end):
        return []
    if end - start == 1:
        return [start]
    middle = (start + end) // 2
    return rows_refused(accepts, start, middle) + rows_refused(accepts, middle, end)


def column_of(values: list[Any], arrow_type: pa.DataType, bad: dict[int, str], reason: str) -> pa.Array:
    """The values as a column; a value that Arrow cannot take becomes null, and is bad for this reason."""

    def accepts(start: int, end: int) -> bool:
        try:
            pa.array(values[start:end], arrow_type)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            return False
        return True

    for row in rows_refused(accepts, 0, len(values)):
        bad[row] = reason
        values[row] = None
    return pa.array(values, arrow_type)
