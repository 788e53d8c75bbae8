"""What clients did and what was reported to them, each with its time: the part of a history that no broker can write.

Every process writes a journal of its own, one line for an event, by one write: what a killed process had noted is
there. Times are of the machine's monotonic clock, which all its processes share. A client notes what it is about to
ask before it asks, and a response after it came: so "asked after the response" holds between two clients.
"""

import json
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """`actor` names one life of one client: a client that is started again is another actor."""

    actor: str
    at_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledged(Event):
    """A producer got an acknowledgement with this offset for its record. librdkafka knows no offset of a batch whose
    response was an error, or was lost, if it then sees that a later batch is stored: that one implies it."""

    topic: str
    partition: int
    offset: int | None
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EndAsked(Event):
    """A producer is about to end its transaction. Transactions of an actor are numbered from 0."""

    transaction: int
    commit: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended(Event):
    """The outcome of a transaction was reported to its producer."""

    transaction: int
    committed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Read(Event):
    """A read_committed reader was given this record."""

    topic: str
    partition: int
    offset: int
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Owns(Event):
    """A member of a group holds these partitions from now on, and no others. `epoch` is the generation of a classic
    group, or the member's epoch. With nothing owned it has just given up what it had.
    """

    group: str
    member_id: str
    epoch: int
    partitions: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost(Event):
    """A member was fenced or removed: its partitions may have been another's for a while."""

    group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused(Event):
    """The actor stands still (SIGSTOP), and knows nothing of it. Noted by the process that stops it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Killed(Event):
    """The actor does nothing more. Noted by the process that ends it, beforehand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitAsked(Event):
    """A commit is about to be sent. `back`: it is meant to go back."""

    group: str
    topic: str
    partition: int
    offset: int
    back: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitAcknowledged(Event):
    group: str
    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetched(Event):
    """The committed offset of the group, fetched at `asked_ns`; -1: none."""

    asked_ns: int
    group: str
    topic: str
    partition: int
    offset: int


_KINDS: dict[str, type[Event]] = {
    kind.__name__: kind
    for kind in (
        Acknowledged,
        EndAsked,
        Ended,
        Read,
        Owns,
        Lost,
        Paused,
        Killed,
        CommitAsked,
        CommitAcknowledged,
        OffsetFetched,
    )
}


class Derived(NamedTuple):
    """What a processor writes for a record that it read: where that was, and in which transaction it wrote."""

    actor: str
    transaction: int
    topic: str
    partition: int
    offset: int
    value: str

    def text(self) -> str:
        return "|".join(map(str, self))

    @classmethod
    def parse(cls, text: str) -> "Derived":
        actor, transaction, topic, partition, offset, value = text.split("|", 5)
        return cls(actor, int(transaction), topic, int(partition), int(offset), value)


class Journal:
    """Where an actor notes its events. Several threads may use it."""

    def __init__(self, folder: Path, actor: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.actor = actor
        self._file = os.open(folder / f"{actor}.journal", os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC)

    def note(self, *events: Event) -> None:
        """The moment of an event that has none yet is now."""
        now_ns = time.monotonic_ns()
        os.write(self._file, b"".join(_line(event, now_ns) for event in events))

    def close(self) -> None:
        os.close(self._file)


def _line(event: Event, now_ns: int) -> bytes:
    fields = asdict(event)
    fields["at_ns"] = event.at_ns or now_ns
    return json.dumps({"kind": type(event).__name__, **fields}, separators=(",", ":")).encode() + b"\n"


def read_journals(folder: Path, actors: str = "*") -> list[Event]:
    """All events of the actors whose names match, in the order of their moments."""
    paths = sorted(folder.glob(f"{actors}.journal"))
    events = [event for path in paths for event in _events(path.read_text().splitlines())]
    return sorted(events, key=lambda event: event.at_ns)


def _events(lines: Iterable[str]) -> Iterator[Event]:
    for line in lines:
        fields: dict[str, Any] = json.loads(line)
        if "partitions" in fields:
            fields["partitions"] = tuple((topic, partition) for topic, partition in fields["partitions"])
        yield _KINDS[fields.pop("kind")](**fields)
