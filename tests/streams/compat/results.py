"""What running a topology gave, in a form that both sides have."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class Row(NamedTuple):
    """A record that was written, and the number of the step that caused it."""

    step: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: tuple[tuple[str, bytes | None], ...] = ()


class StoreRow(NamedTuple):
    """An entry of a store at the end; the window is that of its key, if it has one."""

    key: str
    value: str
    timestamp: int | None
    start: int | None = None
    end: int | None = None


class ChangelogRow(NamedTuple):
    """What a changelog topic has for a key at the end."""

    value: bytes | None
    timestamp: int | None
    """None where it depends on the micro-batch."""


@dataclass(frozen=True, slots=True)
class Result:
    topics: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    stores: Mapping[str, Sequence[StoreRow]] = field(default_factory=dict)
    changelogs: Mapping[str, Mapping[bytes, ChangelogRow]] = field(default_factory=dict)
    """By the names of stores."""
    description: str = ""
    error: str | None = None
