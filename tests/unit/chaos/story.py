"""A made-up history that keeps every rule, small enough to be read, and in pieces that a test can change.

Feeder `feeder` writes four records to `in`-0. Processor `one` makes two records of the first two in its transaction 0,
tries the third and aborts, and stops; `two` takes over, and makes records of the rest. `reader` reads `out`-0. All of
it goes through real batches, so that the reading of logs is part of what is tested.
"""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kaspar.records import (
    BatchHeader,
    ControlType,
    EndTransactionMarker,
    Record,
    build_batch,
    build_end_transaction_marker,
    iter_batch,
    iter_headers,
)
from tests.chaos.history import (
    OFFSETS_TOPIC,
    Acknowledged,
    CommitAcknowledged,
    CommitAsked,
    Derived,
    EndAsked,
    Ended,
    Event,
    History,
    Lost,
    OffsetFetched,
    Owns,
    PartitionLog,
    Pipeline,
    Read,
)
from tests.chaos.ledger import value_of

GROUP = "group"
PIPELINE = Pipeline("in", "out", GROUP)
SOURCE, TARGET, OFFSETS = ("in", 0), ("out", 0), (OFFSETS_TOPIC, 0)
ONE, TWO = 1001, 1002  # producer ids
_TIMESTAMP = 1_700_000_000_000


@dataclass
class Batch:
    """Records of one batch, or the marker that ends a transaction."""

    values: list[str] = field(default_factory=list)
    keys: list[bytes | None] = field(default_factory=list)
    binary: list[bytes | None] = field(default_factory=list)
    producer_id: int = -1
    marker: bool | None = None  # whether it commits
    skip: int = 0  # offsets that are left out before it

    def build(self, base_offset: int) -> bytearray:
        if self.marker is not None:
            kind = ControlType.COMMIT if self.marker else ControlType.ABORT
            return build_end_transaction_marker(
                EndTransactionMarker(kind, 0),
                producer_id=self.producer_id,
                producer_epoch=0,
                timestamp=_TIMESTAMP,
                base_offset=base_offset,
            )
        transactional = self.producer_id >= 0
        contents: list[bytes | None] = [*(value.encode() for value in self.values), *self.binary]
        keys = self.keys or [None] * len(contents)
        return build_batch(
            [Record(_TIMESTAMP, key, value) for key, value in zip(keys, contents, strict=True)],
            base_offset=base_offset,
            producer_id=self.producer_id,
            producer_epoch=0 if transactional else -1,
            base_sequence=0 if transactional else -1,
            transactional=transactional,
        )


def commit_batch(offset: int | None, producer_id: int = -1, group: str = GROUP) -> Batch:
    """A committed offset of `in`-0, as Kafka lays it out."""
    key = struct.pack(f">hh{len(group)}sh2si", 1, len(group), group.encode(), 2, b"in", 0)
    value = None if offset is None else struct.pack(">hqihq", 3, offset, -1, 0, _TIMESTAMP)
    return Batch(keys=[key], binary=[value], producer_id=producer_id)


def generation_batch(generation: int, *members: str) -> Batch:
    """A generation of a classic group, as Kafka lays it out."""
    value = struct.pack(">hh8sihhqi", 3, 8, b"consumer", generation, -1, -1, _TIMESTAMP, len(members))
    for member in members:
        value += _text(member) + struct.pack(">h", -1) + _text("client") + _text("/host") + struct.pack(">ii", 9, 9)
        value += struct.pack(">i2si3s", 2, b"ab", 3, b"cde")
    return Batch(keys=[struct.pack(">h", 2) + _text(GROUP)], binary=[value])


def member_batch(member: str, epoch: int | None) -> Batch:
    """The epoch of a member of a consumer group; None: it is none any more."""
    value = None if epoch is None else struct.pack(">hiibBBB", 0, epoch, epoch - 1, 0, 1, 1, 0)
    return Batch(keys=[struct.pack(">h", 8) + _text(GROUP) + _text(member)], binary=[value])


def _text(text: str) -> bytes:
    return struct.pack(f">h{len(text)}s", len(text), text.encode())


def owns(actor: str, at_ns: int, *, epoch: int, partitions: tuple[tuple[str, int], ...]) -> Owns:
    return Owns(actor=actor, at_ns=at_ns, group=GROUP, member_id=f"member-{actor}", epoch=epoch, partitions=partitions)


def derived(actor: str, transaction: int, offset: int, value: str | None = None) -> str:
    return Derived(actor, transaction, "in", 0, offset, value or input_value(offset)).text()


def input_value(number: int, producer: str = "feeder") -> str:
    return value_of(producer, 0, number).decode()


@dataclass
class Story:
    logs: dict[tuple[str, int], list[Batch]]
    events: list[Event]

    @classmethod
    def sound(cls) -> "Story":
        logs = {
            SOURCE: [Batch([input_value(0), input_value(1)]), Batch([input_value(2), input_value(3)])],
            TARGET: [
                Batch([derived("one", 0, 0), derived("one", 0, 1)], producer_id=ONE),  # offsets 0 and 1
                Batch(producer_id=ONE, marker=True),
                Batch([derived("one", 1, 2)], producer_id=ONE),  # offset 3
                Batch(producer_id=ONE, marker=False),
                Batch([derived("two", 0, 2), derived("two", 0, 3)], producer_id=TWO),  # offsets 5 and 6
                Batch(producer_id=TWO, marker=True),
            ],
            OFFSETS: [
                commit_batch(2, ONE),
                Batch(producer_id=ONE, marker=True),
                commit_batch(3, ONE),
                Batch(producer_id=ONE, marker=False),
                commit_batch(4, TWO),
                Batch(producer_id=TWO, marker=True),
            ],
        }
        where = {"group": GROUP, "topic": "in", "partition": 0}
        events: list[Event] = [
            *(
                Acknowledged(actor="feeder", at_ns=1, topic="in", partition=0, offset=each, value=input_value(each))
                for each in range(4)
            ),
            owns("one", 10, epoch=1, partitions=(("in", 0),)),
            CommitAsked(actor="one", at_ns=19, offset=2, **where),  # type: ignore[arg-type]
            EndAsked(actor="one", at_ns=20, transaction=0, commit=True),
            Ended(actor="one", at_ns=21, transaction=0, committed=True),
            CommitAcknowledged(actor="one", at_ns=21, offset=2, **where),  # type: ignore[arg-type]
            _read(22, 0, derived("one", 0, 0)),
            _read(22, 1, derived("one", 0, 1)),
            CommitAsked(actor="one", at_ns=29, offset=3, **where),  # type: ignore[arg-type]
            EndAsked(actor="one", at_ns=30, transaction=1, commit=False),
            Ended(actor="one", at_ns=31, transaction=1, committed=False),
            owns("one", 40, epoch=1, partitions=()),
            owns("two", 50, epoch=2, partitions=(("in", 0),)),
            OffsetFetched(actor="two", at_ns=52, asked_ns=51, offset=2, **where),  # type: ignore[arg-type]
            CommitAsked(actor="two", at_ns=59, offset=4, **where),  # type: ignore[arg-type]
            EndAsked(actor="two", at_ns=60, transaction=0, commit=True),
            Ended(actor="two", at_ns=61, transaction=0, committed=True),
            CommitAcknowledged(actor="two", at_ns=61, offset=4, **where),  # type: ignore[arg-type]
            _read(70, 5, derived("two", 0, 2)),
            _read(70, 6, derived("two", 0, 3)),
            Lost(actor="two", at_ns=80, group=GROUP),
        ]
        return cls(logs, events)

    def history(self, *, ended: bool = True) -> History:
        logs = {place: PartitionLog.of(_read_back(batches)) for place, batches in self.logs.items()}
        return History.of(sorted(self.events, key=lambda event: event.at_ns), logs, PIPELINE, ended=ended)

    def add(self, *events: Event) -> None:
        self.events += events

    def remove(self, kind: type[Event], actor: str) -> None:
        self.events = [each for each in self.events if not (isinstance(each, kind) and each.actor == actor)]


def _read(at_ns: int, offset: int, value: str) -> Read:
    return Read(actor="reader", at_ns=at_ns, topic="out", partition=0, offset=offset, value=value)


def _read_back(batches: Iterable[Batch]) -> Iterator[tuple[BatchHeader, list[Record]]]:
    data = bytearray()
    offset = 0
    for batch in batches:
        offset += batch.skip
        data += batch.build(offset)
        offset += max(1, len(batch.values) + len(batch.binary))
    for position, header in iter_headers(data, 0, len(data)):
        yield header, list(iter_batch(data, position, header))
