"""The positions at which `kaspar consume` starts (`--from`) and stops (`--until`)."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from kaspar.cli.records.times import FORMS, MIN_EPOCH_MS, parse_time


@dataclass(frozen=True, slots=True)
class Start:
    """The first record in the log."""


@dataclass(frozen=True, slots=True)
class End:
    """After the current last record."""


@dataclass(frozen=True, slots=True)
class AtOffset:
    offset: int


@dataclass(frozen=True, slots=True)
class Last:
    """`count` offsets before the end of each partition."""

    count: int


@dataclass(frozen=True, slots=True)
class AtTime:
    """The first record with this timestamp or a later one."""

    timestamp_ms: int


Position = Start | End | AtOffset | Last | AtTime
_STARTS: Final = frozenset({"start", "beginning", "earliest"})
_ENDS: Final = frozenset({"end", "latest"})


def parse_position(text: str, now: datetime) -> Position:
    """Parse a position: start, end, an offset, -N for the last N of each partition, or a time. Raises ValueError with a
    message for users.
    """
    word = text.strip().lower()
    if word in _STARTS:
        return Start()
    if word in _ENDS:
        return End()
    if word.startswith("-") and word[1:].isdecimal():
        return Last(int(word[1:]))
    if word.isdecimal() and int(word) < MIN_EPOCH_MS:
        return AtOffset(int(word))
    try:
        return AtTime(parse_time(text, now))
    except ValueError:
        raise ValueError(f"'{text}' is neither start, end, an offset, -N for the last N, nor a time: {FORMS}") from None


def parse_until(text: str, now: datetime) -> End | AtTime:
    """Parse end, or a time: records with this timestamp or a later one are not read. Raises ValueError with a message
    for users.
    """
    if text.strip().lower() in _ENDS:
        return End()
    try:
        return AtTime(parse_time(text, now))
    except ValueError:
        raise ValueError(f"'{text}' is neither end nor a time: {FORMS}") from None
