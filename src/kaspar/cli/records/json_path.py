"""A subset of JSONPath (RFC 9535), which selects parts of a JSON value.

    $.customer.id        a member          $['first name']    a member with any name
    $.items[0]           an element        $.items[-1]        the last one
    $.items[*].price     every element     $..price           every member of this name, at any depth

The leading `$.` may be omitted. There are no filters: `kaspar consume --where` has Python expressions.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

_STEP: Final = re.compile(
    r"""(?P<deep>\.\.)?(?:
        (?(deep)|\.)(?P<name>[^\s.\[\]'"*()?@,:]+)
      | (?(deep)|\.)(?P<all>\*)
      | \[\s*(?P<index>-?\d+)\s*\]
      | \[\s*(?P<every>\*)\s*\]
      | \[\s*(?P<quoted>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\s*\]
    )""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class _Step:
    which: str | int | None
    """The name of a member, the index of an element, or None for all."""
    deep: bool


@dataclass(frozen=True, slots=True)
class JsonPath:
    text: str
    _steps: tuple[_Step, ...]

    def find(self, value: Any) -> list[Any]:
        """All parts of the value that match the path, in the order of the value."""
        found = [value]
        for step in self._steps:
            found = [part for each in found for part in _apply(step, each)]
        return found


def parse_json_path(text: str) -> JsonPath:
    """Parse a path. Raises ValueError with a message for users."""
    rest = text.strip()
    if rest.startswith("$"):
        rest = rest[1:]
    elif rest and rest[0] not in ".[":
        rest = f".{rest}"
    steps = []
    position = 0
    while position < len(rest):
        match = _STEP.match(rest, position)
        if match is None:
            raise ValueError(
                f"'{text}' is not a path: '{rest[position:]}' is neither .name, ['name'], [0], [*] nor ..name"
            )
        steps.append(_Step(_which(match), match["deep"] is not None))
        position = match.end()
    return JsonPath(text, tuple(steps))


def _which(match: re.Match[str]) -> str | int | None:
    if match["name"] is not None:
        return match["name"]
    if match["index"] is not None:
        return int(match["index"])
    if match["quoted"] is not None:
        return re.sub(r"\\(.)", r"\1", match["quoted"][1:-1])
    return None


def _apply(step: _Step, value: Any) -> Iterator[Any]:
    for each in _with_descendants(value) if step.deep else (value,):
        match step.which, each:
            case None, dict():
                yield from each.values()
            case None, list():
                yield from each
            case str() as name, dict() if name in each:
                yield each[name]
            case int() as index, list() if -len(each) <= index < len(each):
                yield each[index]


def _with_descendants(value: Any) -> Iterator[Any]:
    """The value and all values nested in it. Not recursive, because JSON may be deeply nested."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        yield each
        match each:
            case dict():
                waiting += reversed(each.values())
            case list():
                waiting += reversed(each)
