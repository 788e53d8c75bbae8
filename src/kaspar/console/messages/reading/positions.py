"""Where to start reading in a topic: at one of its ends, an offset or a time, or where an earlier page ended."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Final, TypeAlias

from kaspar.console.problems import Unacceptable

_MAX_CURSOR: Final = 200_000
_CURSOR: Final = re.compile(r"[0-9]{1,9}:[0-9]{1,19}(?:,[0-9]{1,9}:[0-9]{1,19})*")
_MAX_OFFSET: Final = 2**63 - 1


class Direction(StrEnum):
    FORWARD = "forward"
    BACKWARD = "backward"


class End(Enum):
    OLDEST = "oldest"
    NEWEST = "newest"


@dataclass(frozen=True, slots=True)
class AtOffset:
    """The same offset in every partition that is read."""

    offset: int


@dataclass(frozen=True, slots=True)
class AtTime:
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class Cursor:
    """An offset for each partition: a place between the records below these offsets and all others."""

    offsets: Mapping[int, int]

    def __str__(self) -> str:
        return ",".join(f"{partition}:{offset}" for partition, offset in sorted(self.offsets.items()))


Position: TypeAlias = End | AtOffset | AtTime | Cursor


def parse_position(text: str) -> Position:
    """Parse `newest`, `oldest`, `offset:17`, `time:1700000000000` or `cursor:0:17,1:4`. Raises Unacceptable."""
    kind, _, rest = text.partition(":")
    match kind:
        case "newest" | "oldest" if not rest:
            return End(kind)
        case "offset":
            return AtOffset(_number(rest, "offset"))
        case "time":
            return AtTime(_number(rest, "time"))
        case "cursor":
            return parse_cursor(rest)
    raise Unacceptable(f"Invalid position {text[:80]!r}: use newest, oldest, offset:N, time:MS or cursor:P:N,...")


def parse_partitions(text: str) -> tuple[int, ...]:
    """Parse `0,3,4`; an empty text means all partitions. Raises Unacceptable."""
    try:
        return tuple(sorted({int(each) for each in text.split(",")})) if text else ()
    except ValueError:
        raise Unacceptable(f"Partitions must be comma-separated numbers, not {text[:80]!r}.") from None


def parse_offset(text: str) -> int:
    """Raises Unacceptable."""
    return _number(text, "offset")


def _number(text: str, name: str) -> int:
    if not re.fullmatch(r"[0-9]{1,19}", text) or int(text) > _MAX_OFFSET:
        raise Unacceptable(f"The {name} must be an integer, not {text[:80]!r}.")
    return int(text)


def parse_cursor(text: str) -> Cursor:
    """Parse `0:17,1:4`. Raises Unacceptable."""
    if len(text) > _MAX_CURSOR or not _CURSOR.fullmatch(text):
        raise Unacceptable("The position is not a cursor of the form PARTITION:OFFSET,...")
    pairs = (each.split(":") for each in text.split(","))
    return Cursor({int(partition): min(int(offset), _MAX_OFFSET) for partition, offset in pairs})
