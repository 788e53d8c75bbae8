"""An event goes into a coordinator; this comes out."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeAlias

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.protocol.schema import Message


class Now(NamedTuple):
    """The same moment on three clocks. `wall_ms` goes into records and may jump; `steady_ms` never goes back: timers,
    and all that happened since the shard was loaded. The age of what the log told is judged by `believed_ms`, which is
    slow to believe a jump ahead (base/patient_clock.py): what expires does not come back.
    """

    wall_ms: int
    steady_ms: int
    believed_ms: int


class StoredRecord(NamedTuple):
    """A record of an internal topic, in words. Without a value it is a tombstone."""

    key: Message
    value: Message | None


class Ticket(Protocol):
    """Somebody who waits for an answer. To a coordinator it is a name to answer to, and nothing else."""

    def refused(self, code: ErrorCode) -> Message:
        """How that somebody is told that nothing came of it."""
        ...


class Reply(NamedTuple):
    ticket: Ticket
    message: Message


class Timer(NamedTuple):
    """Wake the shard with `key` at `at_ms` of the steady clock; what was set for that key before no longer counts. None
    takes it back. A deadline that only moves away needs no timer at each move: look when the old one fires.
    """

    key: Hashable
    at_ms: int | None


Action: TypeAlias = Any
"""What a shell has to do beyond that (write markers, resolve patterns): each coordinator has its own classes for it."""


class OneRecord(NamedTuple):
    """A decision whose outcome is one record, in bytes, and nothing else; `take_in` is called when it is in the log."""

    key: bytes
    value: bytes
    take_in: Callable[[], None]


@dataclass(slots=True)
class Decision:
    """`records` are appended as one batch: all of them or none, within the transaction of `producer` if one is named.

    Replies and actions wait until they are committed; timers do not. If the log refuses the records, the tickets
    of the replies are told so, actions are dropped, and `if_refused` may put in order what was changed beside the log.
    """

    records: list[StoredRecord] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    timers: list[Timer] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    producer: ProducerIdAndEpoch | None = None
    if_refused: "Callable[[ErrorCode, Now], Decision] | None" = None
