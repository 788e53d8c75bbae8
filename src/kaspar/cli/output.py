"""Command output: a table on a terminal, aligned text in a pipe, or JSON or YAML on request.

Colours are used only on terminals, and not if NO_COLOR is set or --no-color is given. Rich, which draws on terminals,
is imported only then.
"""

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from kaspar.base.errors import KasparError
from kaspar.cli.failures import explain, worst
from kaspar.cli.printable import printable
from kaspar.cli.standard_streams import is_utf8

if TYPE_CHECKING:
    from rich.console import Console

Row = Mapping[str, object]
"""Plain values by key, as in JSON."""


class Format(Enum):
    TEXT = "text"
    JSON = "json"
    YAML = "yaml"


@dataclass(frozen=True, slots=True)
class Column:
    key: str
    title: str
    text: Callable[[object], str] | None = None
    """Formats the value for people, such as sizes and times."""
    alarms: Callable[[object], bool] | None = None
    """Whether the value deserves attention: red on a terminal."""


@dataclass(frozen=True, slots=True)
class Done:
    """The result of one of several changes."""

    what: str
    """The resource, such as "topic orders"."""
    keys: Row
    """The resource for programs: {"topic": "orders"}."""
    sentence: str = ""
    """What happened: "created"."""
    problem: KasparError | None = None


class Output:
    def __init__(self, output_format: Format = Format.TEXT, *, color: bool = True, headers: bool = True) -> None:
        self._format = output_format
        self._color = color
        self._headers = headers

    @property
    def is_text(self) -> bool:
        return self._format is Format.TEXT

    def table(self, columns: Sequence[Column], rows: Sequence[Row], *, empty: str | None = None) -> None:
        """Print a table. JSON and YAML contain all values of the rows, including those without a column. `empty` is the
        text if there are no rows."""
        if not self.is_text:
            self.value(list(rows))
        elif rows:
            self.text_table(columns, rows)
        elif empty is not None:
            print(empty, file=sys.stderr)

    def record(self, record: Row, draw: Callable[[], None]) -> None:
        """Print one object with all its details; `draw` prints it as text."""
        if self.is_text:
            draw()
        else:
            self.value(record)

    def value(self, value: object) -> None:
        """Print a value for programs, as JSON or YAML."""
        if self._format is Format.YAML:
            from kaspar.cli.yaml_text import yaml_text

            print(yaml_text(value), end="")
        else:
            import json

            print(json.dumps(value, indent=2, ensure_ascii=not is_utf8(sys.stdout)))

    def results(self, results: Sequence[Done]) -> int:
        """Print the results of several changes. Returns the exit code."""
        failures = [explain(each.problem, each.what) for each in results if each.problem is not None]
        if self.is_text:
            for each in results:
                if each.problem is None:
                    print(f"{each.what}: {each.sentence}")
            sys.stdout.flush()
        else:
            self.value(
                [
                    {
                        **each.keys,
                        "done": each.problem is None,
                        "error": None if each.problem is None else _reason(each.problem, each.what),
                    }
                    for each in results
                ]
            )
        for failure in failures:
            print(f"kaspar: {failure.sentence}", file=sys.stderr)
        return worst(failure.exit_code for failure in failures)

    def heading(self, text: str, *, style: str = "bold") -> None:
        """Print the heading of a part of a description. `style` is a style of rich, for terminals."""
        text = printable(text)
        if sys.stdout.isatty():
            self._console().print(text, style=style, highlight=False, markup=False)
        else:
            print(text)

    def fields(self, fields: Iterable[tuple[str, object]]) -> None:
        """Print names and values, one per line."""
        pairs = [(name, shown(value)) for name, value in fields]
        width = max((len(name) for name, _ in pairs), default=0)
        for name, value in pairs:
            print(f"{name:{width}}  {value}".rstrip())

    def text_table(self, columns: Sequence[Column], rows: Sequence[Row]) -> None:
        if sys.stdout.isatty():
            self._draw(columns, rows)
        else:
            print("\n".join(aligned(columns, rows, headers=self._headers)))

    def _draw(self, columns: Sequence[Column], rows: Sequence[Row]) -> None:
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, show_header=self._headers, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
        for column in columns:
            table.add_column(column.title, justify="right" if _is_number(column, rows) else "left", overflow="fold")
        for row in rows:
            cells = []
            for column in columns:
                value = row.get(column.key)
                is_alarming = column.alarms is not None and column.alarms(value)
                cells.append(Text(_cell(column, row), style="red" if is_alarming else ""))
            table.add_row(*cells)
        self._console().print(table)

    def _console(self) -> "Console":
        from rich.console import Console

        return Console(no_color=not self._color or "NO_COLOR" in os.environ, highlight=False)


def _reason(problem: KasparError, what: str) -> str:
    """The message without its resource prefix."""
    return explain(problem, what).sentence.removeprefix(f"{what}: ")


def aligned(columns: Sequence[Column], rows: Sequence[Row], *, headers: bool = True) -> list[str]:
    """A table as lines of text, with columns two spaces apart. It suits cut, awk and sort if values have no spaces."""
    lines = [[column.title for column in columns]] if headers else []
    lines += [[_cell(column, row) for column in columns] for row in rows]
    widths = [max((len(line[number]) for line in lines), default=0) for number in range(len(columns))]
    right = [_is_number(column, rows) for column in columns]
    return [
        "  ".join(
            cell.rjust(width) if is_right else cell.ljust(width)
            for cell, width, is_right in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    ]


def shown(value: object) -> str:
    """Format a value for people: empty values as a dash, lists with commas, control characters escaped."""
    match value:
        case None | "":
            return "-"
        case bool():
            return "yes" if value else "no"
        case list() | tuple():
            return ",".join(map(shown, value)) or "-"
        case _:
            return printable(str(value))


def size(value: object) -> str:
    """Format a number of bytes, with units of powers of 1024."""
    if not isinstance(value, int):
        return shown(value)
    amount = float(value)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(amount) < 1024:
            return f"{amount:.0f}{unit}" if unit == "B" else f"{amount:.1f}{unit}"
        amount /= 1024
    return f"{amount:.1f}TiB"


def decimal_size(count: int) -> str:
    """Format a number of bytes for a sentence, with units of powers of 1000."""
    amount = float(count)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:,.1f} GB"


def _cell(column: Column, row: Row) -> str:
    value = row.get(column.key)
    return shown(value) if column.text is None else column.text(value)


def _is_number(column: Column, rows: Sequence[Row]) -> bool:
    values = [row.get(column.key) for row in rows]
    return any(isinstance(value, int | float) and not isinstance(value, bool) for value in values) and all(
        value is None or isinstance(value, int | float) for value in values
    )
