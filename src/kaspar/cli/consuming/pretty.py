"""A record in human-readable form: position, timestamp, key and value, in colours on a terminal.

Record contents are never printed raw: control characters are escaped.
"""

import re
from dataclasses import dataclass
from typing import Any, Final

from kaspar.cli.printable import printable
from kaspar.cli.records.json_text import write_json
from kaspar.cli.records.record import ReadRecord
from kaspar.cli.records.times import local_time

_JSON_TOKEN: Final = re.compile(
    r"""(?P<name>"(?:[^"\\]|\\.)*")(?=\s*:)|(?P<text>"(?:[^"\\]|\\.)*")"""
    r"""|(?P<number>-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)|(?P<word>\b(?:true|false|null)\b)"""
)
_INDENT: Final = "  "


@dataclass(frozen=True, slots=True)
class Colours:
    """The escape sequence for each kind of text; all are empty without colours."""

    place: str = ""
    time: str = ""
    key: str = ""
    name: str = ""
    text: str = ""
    number: str = ""
    word: str = ""
    off: str = ""

    def paint(self, colour: str, text: str) -> str:
        return f"{colour}{text}{self.off}" if colour else text


NO_COLOURS: Final = Colours()
COLOURS: Final = Colours(
    place="\x1b[2m",
    time="\x1b[36m",
    key="\x1b[1;33m",
    name="\x1b[34m",
    text="\x1b[32m",
    number="\x1b[35m",
    word="\x1b[2m",
    off="\x1b[0m",
)


def pretty(record: ReadRecord, *, meta: bool, colours: Colours, width: int) -> str:
    """Format a record in one line if it fits the width, otherwise with the value on separate lines."""
    raw = record.raw
    plain_head = [str(raw), local_time(raw.timestamp_ms)]
    head = [colours.paint(colours.place, plain_head[0]), colours.paint(colours.time, plain_head[1])]
    if raw.key is not None:
        key = _one_line(record.key)
        plain_head.append(key)
        head.append(colours.paint(colours.key, key))
    value = _one_line(record.value)
    lines = [_INDENT + line for line in _details(record)] if meta else []
    if not lines and len("  ".join([*plain_head, value])) <= width:
        return "  ".join([*head, _painted(value, record.value, colours)])
    block = _block(record.value)
    painted = [_INDENT + _painted(line, record.value, colours) for line in block.splitlines() or [""]]
    return "\n".join(["  ".join(head), *lines, *painted])


def _details(record: ReadRecord) -> list[str]:
    raw = record.raw
    kind = "LogAppendTime" if raw.is_append_time else "CreateTime"
    sizes = f"key {_size(raw.key)}, value {_size(raw.value)}"
    epoch = "" if raw.leader_epoch is None else f", leader epoch {raw.leader_epoch}"
    headers = [f"{printable(name)}: {_one_line(_header(data))}" for name, data in raw.headers]
    return [f"{kind} {raw.timestamp_ms}, {sizes}{epoch}", *headers]


def _header(data: bytes | None) -> Any:
    return None if data is None else data.decode(errors="backslashreplace")


def _size(data: bytes | None) -> str:
    return "null" if data is None else f"{len(data)} bytes"


def _one_line(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bytes():
            return f"0x{value.hex()}"
        case str():
            return printable(value)
    return printable(write_json(value))


def _block(value: Any) -> str:
    match value:
        case dict() | list():
            text = write_json(value, indent=2)
        case str():
            text = value
        case _:
            return _one_line(value)
    return "\n".join(printable(line) for line in text.split("\n"))


def _painted(line: str, value: Any, colours: Colours) -> str:
    if colours is NO_COLOURS or isinstance(value, str | bytes):
        return line

    def paint(match: re.Match[str]) -> str:
        return colours.paint(getattr(colours, match.lastgroup or "off"), match[0])

    return _JSON_TOKEN.sub(paint, line)
