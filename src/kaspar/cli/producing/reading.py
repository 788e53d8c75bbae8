"""The input formats of `kaspar produce`: lines, JSON, CSV, records as printed by `kaspar consume --output json`, and
whole files.

A reader takes the bytes of one source and yields entries, each with its place in the source. Unreadable input yields a
BadEntry; the records before and after it are produced. Bytes that are not UTF-8 are preserved (surrogateescape), so
lines may have any encoding.
"""

import csv
import io
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath
from typing import IO, Any, Final, assert_never

from kaspar.cli.records.json_text import read_json, write_json


class InputFormat(StrEnum):
    LINES = "lines"
    JSON = "json"
    CSV = "csv"
    RECORDS = "records"
    WHOLE = "whole"


@dataclass(frozen=True, slots=True)
class Entry:
    """A record before the options for keys, headers and types are applied."""

    place: str
    """'line 17' or 'orders.csv, line 17', for messages."""
    text: str | None
    """The value as text; None is a tombstone."""
    fields: Any = None
    """The same value as JSON, if the format has one: --key-field is resolved here."""
    key: str | None = None
    """The key, if the source itself has keys."""


@dataclass(frozen=True, slots=True)
class BadEntry:
    place: str
    reason: str


_BY_SUFFIX: Final = {
    ".csv": InputFormat.CSV,
    ".json": InputFormat.JSON,
    ".jsonl": InputFormat.JSON,
    ".ndjson": InputFormat.JSON,
}


def format_of(path: str) -> InputFormat:
    """The format of a file by the suffix of its name: .csv, .json, .jsonl, .ndjson; all others have lines."""
    return _BY_SUFFIX.get(PurePath(path).suffix.lower(), InputFormat.LINES)


def read_entries(
    source: IO[bytes], form: InputFormat, *, name: str | None = None, delimiter: str = ",", numbers: bool = False
) -> Iterator[Entry | BadEntry]:
    """Read the entries of a source. `name` is the file's name, for messages. `delimiter` and `numbers` are for CSV."""
    prefix = f"{name}, " if name is not None else ""
    match form:
        case InputFormat.LINES:
            return (Entry(f"{prefix}line {number}", line) for number, line in _lines(source))
        case InputFormat.JSON | InputFormat.RECORDS:
            return _read_json(source, prefix)
        case InputFormat.CSV:
            return _read_csv(source, prefix, delimiter, numbers)
        case InputFormat.WHOLE:
            return iter([Entry(name or "the input", source.read().decode(errors="surrogateescape"))])
        case _:
            assert_never(form)


def _lines(source: IO[bytes]) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(source, start=1):
        yield number, line.removesuffix(b"\n").removesuffix(b"\r").decode(errors="surrogateescape")


def _read_json(source: IO[bytes], prefix: str) -> Iterator[Entry | BadEntry]:
    """Read one JSON value per line, or a single array of values, which may span several lines."""
    lines = _lines(source)
    for number, line in lines:
        if not line.strip():
            continue
        if number == 1 and line.lstrip().startswith("[") and not _is_json(line):
            yield from _read_array("\n".join([line, *(rest for _, rest in lines)]), prefix)
            return
        place = f"{prefix}line {number}"
        try:
            value = read_json(line)
        except ValueError as problem:
            yield BadEntry(place, f"not JSON: {problem}")
            continue
        if number == 1 and isinstance(value, list):
            yield from _elements(value, prefix)
        else:
            yield Entry(place, line.strip(), value)


def _is_json(line: str) -> bool:
    try:
        read_json(line)
    except ValueError:
        return False
    return True


def _read_array(text: str, prefix: str) -> Iterator[Entry | BadEntry]:
    try:
        yield from _elements(read_json(text), prefix)
    except ValueError as problem:
        yield BadEntry(f"{prefix}the array", f"not JSON: {problem}")


def _elements(values: list[Any], prefix: str) -> Iterator[Entry]:
    for number, value in enumerate(values, start=1):
        yield Entry(f"{prefix}element {number}", _json_text(value), value)


def _read_csv(source: IO[bytes], prefix: str, delimiter: str, numbers: bool) -> Iterator[Entry | BadEntry]:
    """Read CSV. The first row has the names of the columns; each further row becomes an object."""
    text = io.TextIOWrapper(source, encoding="utf-8-sig", errors="surrogateescape", newline="")
    rows = csv.reader(text, delimiter=delimiter, strict=True)
    names: list[str] | None = None
    try:
        for row in rows:
            if not row:
                continue
            if names is None:
                names = row
                if twice := [name for name, count in Counter(names).items() if count > 1]:
                    yield BadEntry(f"{prefix}line {rows.line_num}", f"several columns are called '{twice[0]}'")
                    return
                continue
            place = f"{prefix}line {rows.line_num}"
            if len(row) != len(names):
                yield BadEntry(place, f"{len(row)} cells, but there are {len(names)} columns")
                continue
            fields = {
                column: _number_or_text(cell) if numbers else cell for column, cell in zip(names, row, strict=True)
            }
            yield Entry(place, _json_text(fields), fields)
    except csv.Error as problem:
        yield BadEntry(f"{prefix}line {rows.line_num}", f"not CSV: {problem}")
    finally:
        text.detach()  # otherwise it would close the source, which belongs to the caller


def _number_or_text(cell: str) -> int | float | str:
    """A number if the cell has the canonical form of one, otherwise the text: '007' and '+1' stay text."""
    for kind in (int, float):
        try:
            number = kind(cell)
        except ValueError:
            continue
        if isinstance(number, float) and not math.isfinite(number):
            continue
        if str(number) == cell or (kind is float and _is_decimal(cell)):
            return number
    return cell


def _is_decimal(cell: str) -> bool:
    whole, _, fraction = cell.removeprefix("-").partition(".")
    return whole.isdecimal() and fraction.isdecimal() and (whole == "0" or not whole.startswith("0"))


def _json_text(value: Any) -> str:
    return write_json(value)
