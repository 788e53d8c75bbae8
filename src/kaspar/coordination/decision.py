"""The decision of a shard about an event."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar, final

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.base.named_tuples import new_tuple
from kaspar.protocol.schema import Message

T = TypeVar("T")


class Now(NamedTuple):
    """One moment on three clocks. `wall_ms` is written to records and may jump. `steady_ms` never goes back; it is used
    for timers, and for everything that happened since the shard was loaded. `believed_ms` is for the age of records in
    the log; it follows a jump ahead only slowly (base/patient_clock.py), because expired data cannot be restored.
    """

    wall_ms: int
    steady_ms: int
    believed_ms: int


class StoredRecord(NamedTuple):
    """A decoded record of an internal topic. Without a value it is a tombstone."""

    key: Message
    value: Message | None


class Ticket(Protocol):
    """A request that waits for its response."""

    def refused(self, code: ErrorCode) -> Message:
        """Build the response with this error."""
        ...


class Reply(NamedTuple):
    ticket: Ticket
    message: Message


class Timer(NamedTuple):
    """Wake the shard with `key` at `at_ms` of the steady clock. This replaces an earlier timer of that key; None
    cancels it. A deadline that is only postponed needs no new timer each time: check it when the old timer fires.
    """

    key: Hashable
    at_ms: int | None


Action: TypeAlias = Any
"""Anything else to do (write markers, resolve patterns). Each coordinator has its own classes for it."""


@final
class EncodedRecord(NamedTuple):
    """A record that is already encoded, as key and value. `replay` does what the shard's own `replay` does with the
    decoded record.
    """

    encoded: tuple[bytes, bytes]
    replay: Callable[[], None]


AnyRecord: TypeAlias = StoredRecord | EncodedRecord
IfRefused: TypeAlias = Callable[[ErrorCode, Now], "Decision"]


class Decision:
    """The result of an event: Kafka's CoordinatorResult.

    `records` are appended as one batch: all of them or none, within the transaction of `producer` if one is given.
    `response` is for the request that was the event, `replies` are for requests that were waiting. These and `actions`
    are held back until the records are committed; timers are not. If the log refuses the records, the request and the
    tickets of the replies are refused, actions are dropped, and `if_refused` may undo changes outside the log.

    Most decisions are small, so empty sequences are shared: use the `add_` methods to add to them.
    """

    __slots__ = ("actions", "if_refused", "producer", "records", "replies", "response", "timers")

    def __init__(
        self,
        records: Sequence[AnyRecord] = (),
        response: Message | None = None,
        *,
        replies: Sequence[Reply] = (),
        timers: Sequence[Timer] = (),
        actions: Sequence[Action] = (),
        producer: ProducerIdAndEpoch | None = None,
        if_refused: IfRefused | None = None,
    ) -> None:
        self.records = records
        self.response = response
        self.replies = replies
        self.timers = timers
        self.actions = actions
        self.producer = producer
        self.if_refused = if_refused

    def __repr__(self) -> str:
        return f"Decision({', '.join(f'{name}={getattr(self, name)!r}' for name in self.__slots__)})"

    def add_record(self, record: AnyRecord) -> None:
        self.records = _with(self.records, record)

    def add_records(self, records: Iterable[AnyRecord]) -> None:
        self.records = _with_all(self.records, records)

    def add_reply(self, ticket: Ticket, message: Message) -> None:
        self.replies = _with(self.replies, new_tuple(Reply, (ticket, message)))

    def add_replies(self, replies: Iterable[Reply]) -> None:
        self.replies = _with_all(self.replies, replies)

    def add_timer(self, key: Hashable, at_ms: int | None) -> None:
        self.timers = _with(self.timers, new_tuple(Timer, (key, at_ms)))

    def add_timers(self, timers: Iterable[Timer]) -> None:
        self.timers = _with_all(self.timers, timers)

    def add_action(self, action: Action) -> None:
        self.actions = _with(self.actions, action)


def _with(sequence: Sequence[T], element: T) -> Sequence[T]:
    """Append the element, in place if the sequence is already a list that belongs to the decision."""
    if type(sequence) is list:
        sequence.append(element)
        return sequence
    return [*sequence, element]


def _with_all(sequence: Sequence[T], elements: Iterable[T]) -> Sequence[T]:
    if type(sequence) is list:
        sequence.extend(elements)
        return sequence
    return [*sequence, *elements]
