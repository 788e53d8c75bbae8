"""What a member of a group commits: the records that it has printed, and no other. Brokers: tests/integration/cli."""

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from kaspar.base.ids import TopicPartition
from kaspar.cli.consuming.outputs import Output, show
from kaspar.cli.consuming.pretty import NO_COLOURS
from kaspar.cli.consuming.printing import Printer
from kaspar.cli.consuming.reading import Reading
from kaspar.cli.consuming.remaining import Remaining
from kaspar.cli.consuming.where import compile_where

WHERE = TopicPartition("numbers", 0)


@dataclass(frozen=True, slots=True)
class Message:
    """One of librdkafka's, which only librdkafka can make with an offset."""

    number: int

    def error(self) -> None: ...
    def topic(self) -> str:
        return WHERE.topic

    def partition(self) -> int:
        return WHERE.partition

    def offset(self) -> int:
        return self.number

    def timestamp(self) -> tuple[int, int]:
        return 1, 0

    def key(self) -> None: ...
    def value(self) -> bytes:
        return b"%d" % self.number

    def headers(self) -> None: ...
    def leader_epoch(self) -> int:
        return 0


@dataclass(slots=True)
class Consumer:
    messages: list[Message]
    stored: list[int] = field(default_factory=list)
    is_closed: bool = False

    def poll(self, timeout: float) -> Message:
        return self.messages.pop(0)

    def consume(self, count: int, timeout: float) -> Sequence[Message]:
        found, self.messages = self.messages[:count], self.messages[count:]
        return found

    def store_offsets(self, message: Message) -> None:
        self.stored.append(message.number)

    def close(self) -> None:
        self.is_closed = True


def _read(*, end: int | None = None, limit: int | None = None, where: str | None = None) -> tuple[list[str], list[int]]:
    consumer, out = Consumer([Message(number) for number in range(10)]), io.BytesIO()
    shown = show(Output.VALUE, meta=False, separator="", colours=NO_COLOURS, width=80)
    printer = Printer(shown, compile_where(where) if where is not None else None, limit, out=out)
    remaining = None
    if end is not None:
        remaining = Remaining({WHERE: end})
        remaining.assign({WHERE: None})
    Reading(cast(Any, consumer), remaining, printer, commits=True).run()
    assert consumer.is_closed
    return out.getvalue().decode().split(), consumer.stored


def test_records_behind_the_end_are_neither_printed_nor_committed() -> None:
    assert _read(end=3) == (["0", "1", "2"], [2])


def test_records_beyond_the_limit_are_neither_printed_nor_committed() -> None:
    assert _read(limit=4) == (["0", "1", "2", "3"], [3])


def test_records_that_do_not_match_are_committed() -> None:
    assert _read(end=10, where="value == 5") == (["5"], [9])
