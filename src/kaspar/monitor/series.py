"""Time series with bounded memory: recent values are complete, older ones are sparser."""

from array import array
from bisect import bisect_left
from math import isnan, nan


class Series:
    """Rows of a time and `columns` numbers. When it is full, every second row of its older half is removed."""

    __slots__ = ("_at_ms", "_capacity", "_columns", "_keep_ms")

    def __init__(self, *, keep_ms: int, capacity: int, columns: int = 1) -> None:
        self._keep_ms = keep_ms
        self._capacity = capacity
        self._at_ms = array("q")
        self._columns = tuple(array("d") for _ in range(columns))

    def __len__(self) -> int:
        return len(self._at_ms)

    def append(self, at_ms: int, *values: float | None) -> None:
        """Add a row, unless its time is not later than the last, because the clock was set back."""
        if self._at_ms and at_ms <= self._at_ms[-1]:
            return
        self._at_ms.append(at_ms)
        for column, value in zip(self._columns, values, strict=True):
            column.append(nan if value is None else value)
        expired = bisect_left(self._at_ms, at_ms - self._keep_ms)
        del self._at_ms[:expired]
        for column in self._columns:
            del column[:expired]
        if len(self._at_ms) > self._capacity:
            middle = len(self._at_ms) // 2
            self._at_ms[:middle] = self._at_ms[0:middle:2]
            for column in self._columns:
                column[:middle] = column[0:middle:2]

    def since(self, since_ms: int) -> list[tuple[int, tuple[float | None, ...]]]:
        """The rows at or after that time, oldest first."""
        first = bisect_left(self._at_ms, since_ms)
        columns = ([None if isnan(value) else value for value in column[first:]] for column in self._columns)
        return list(zip(self._at_ms[first:], zip(*columns, strict=True), strict=True))

    def last(self) -> tuple[int, tuple[float | None, ...]] | None:
        return self.since(self._at_ms[-1])[0] if self._at_ms else None
