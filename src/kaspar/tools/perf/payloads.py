"""The contents of a load's records, as columns from which the compiled core builds batches."""

import random
import re
from array import array
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from kaspar.records.column_writing import OctetColumn, RecordColumns, all_rows
from kaspar.tools.command_line import CommandFailed

# Larger than the default windows of codecs, so that letters of the pool compress like fresh ones.
_POOL_BYTES: Final = 4 << 20
_PICKS: Final = 1 << 16
_NUMBERS_AT_ONCE: Final = 10_000
_LETTERS: Final = bytes(65 + each % 26 for each in range(256))


class Rows(NamedTuple):
    """The rows of columns from `first` up to `last`, each of which is a record without a key."""

    columns: RecordColumns
    rows: memoryview
    first: int
    last: int
    ends: Sequence[int]
    """The size of all values up to a row: the size of these rows is `ends[last] - ends[first]`."""


class Payloads(Protocol):
    def take(self, count: int) -> Rows:
        """The next rows, at least one and at most `count`."""
        ...


class RandomLetters:
    """Values of a fixed size, from a pool that is reused."""

    def __init__(self, record_size: int, seed: int = 0) -> None:
        count = max(1, _POOL_BYTES // record_size)
        data = random.Random(seed).randbytes(count * record_size).translate(_LETTERS)
        self._ends = range(0, (count + 1) * record_size, record_size)
        self._columns = _columns(data, array("i", self._ends))
        self._rows = all_rows(count)
        self._at = 0

    def take(self, count: int) -> Rows:
        if self._at == len(self._rows):
            self._at = 0
        first, self._at = self._at, min(self._at + count, len(self._rows))
        return Rows(self._columns, self._rows, first, self._at, self._ends)


class PickedValues:
    """Values picked at random from a list."""

    def __init__(self, values: Sequence[bytes], seed: int = 0) -> None:
        rng = random.Random(seed)
        picks = array("i", (rng.randrange(len(values)) for _ in range(_PICKS)))
        self._columns = _columns(b"".join(values), array("i", [0, *accumulate(map(len, values))]))
        self._rows = memoryview(picks)
        self._ends = [0, *accumulate(len(values[pick]) for pick in picks)]
        self._at = 0

    def take(self, count: int) -> Rows:
        if self._at == _PICKS:
            self._at = 0
        first, self._at = self._at, min(self._at + count, _PICKS)
        return Rows(self._columns, self._rows, first, self._at, self._ends)


class CountingNumbers:
    """0, 1, 2, ... as text."""

    def __init__(self) -> None:
        self._next = 0

    def take(self, count: int) -> Rows:
        count = min(count, _NUMBERS_AT_ONCE)
        texts = [b"%d" % each for each in range(self._next, self._next + count)]
        self._next += count
        ends = array("i", [0, *accumulate(map(len, texts))])
        return Rows(_columns(b"".join(texts), ends), all_rows(count), 0, count, ends)


def read_payload_file(path: str, delimiter: str) -> list[bytes]:
    """The values of a file. `delimiter` is a regular expression. Raises CommandFailed."""
    print(f"Reading payloads from: {Path(path).absolute()}")
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError:
        text = ""
    if not text:
        raise CommandFailed("File does not exist or empty file provided.")
    values = [each.encode() for each in re.split(delimiter, text)]
    if not values[-1]:  # the text ends with a delimiter
        del values[-1]
    if not values:
        raise CommandFailed(f"{path} has nothing but delimiters.")
    print(f"Number of records read: {len(values)}")
    return values


def _columns(data: bytes, ends: "array[int]") -> RecordColumns:
    count = len(ends) - 1
    return RecordColumns(OctetColumn(count), OctetColumn(count, memoryview(ends), data))
