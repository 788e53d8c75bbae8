"""The interface of decoders: bytes of one column in, values of one Spark type out, and a reason for each bad row.

A record that cannot be decoded does not affect its neighbours: it is null in the values, and has its own reason. A null
record (a null key, a tombstone) is null, and not bad.
"""

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql.types import DataType


@dataclass(frozen=True, slots=True)
class Decoded:
    values: pa.Array  # of the Arrow type of the decoder's data_type, with one value for each row
    bad: Mapping[int, str] = field(default_factory=dict)  # why a row could not be decoded; such a row is null


class Decoder(Protocol):
    @property
    def data_type(self) -> DataType:
        """The type of the column in Spark."""

    def decode(self, column: pa.BinaryArray) -> Decoded: ...


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the garbage collector. Values that are created one by one all live until they are in their column, so it
    would find nothing, and take as long as the decoding itself."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def rows_refused(accepts: Callable[[int, int], bool], start: int, end: int) -> list[int]:
    """The rows in start..end that `accepts` refuses, found by bisection."""
    if start == end or accepts(start, end):
        return []
    if end - start == 1:
        return [start]
    middle = (start + end) // 2
    return rows_refused(accepts, start, middle) + rows_refused(accepts, middle, end)


class Unfit(Exception):
    """A value does not fit its column. The text is the reason for its row."""


@contextmanager
def fitting(reason: str) -> Iterator[None]:
    """Turn errors of Arrow into Unfit with this reason."""
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise Unfit(reason) from error


def column_of(values: list[Any], gather: Callable[[list[Any]], pa.Array], bad: dict[int, str]) -> pa.Array:
    """The column that `gather` builds from the values. A value that does not fit becomes null and bad."""
    with suppress(Unfit):
        return gather(values)
    reasons: dict[int, str] = {}

    def fits(start: int, end: int) -> bool:
        try:
            gather(values[start:end])
        except Unfit as unfit:
            reasons[start] = str(unfit)  # the last call for a row that does not fit is for this row alone
            return False
        return True

    for row in rows_refused(fits, 0, len(values)):
        bad[row] = reasons[row]
        values[row] = None
    return gather(values)


def in_rows(parts: Sequence[tuple[npt.NDArray[np.int32], pa.Array]], count: int) -> pa.Array:
    """A column of `count` rows, composed of at least one part. A part has row numbers, and the values of these rows.
    All other rows are null."""
    rows = np.concatenate([rows for rows, _ in parts])
    where = np.zeros(count, dtype=np.int64)
    where[rows] = np.arange(len(rows))
    missing = np.ones(count, dtype=bool)
    missing[rows] = False
    values = pa.concat_arrays([values for _, values in parts]) if len(parts) > 1 else parts[0][1]
    return values.take(pa.array(where, mask=missing))
