"""Groups of records that are written together, and the results of their records."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from kaspar.callers.identities import Identity
from kaspar.rest.context import RestContext
from kaspar.rest.errors import RestError
from kaspar.rest.producing import Delivered, Outcome, WaitForOutcomes
from kaspar.rest.v3.producing.encoding import EncodedRecord

Prepared: TypeAlias = EncodedRecord | RestError
"""A record, or the error that prevents writing it."""
Result: TypeAlias = tuple[EncodedRecord, Delivered] | RestError


@dataclass(frozen=True, slots=True)
class Group:
    """Records that a producer has accepted."""

    _prepared: Sequence[Prepared]
    _wait: WaitForOutcomes | None
    """None if the producer has none of the records."""
    size: int = 0
    """The memory that the records take, in bytes."""

    async def results(self) -> list[Result]:
        """The result of each record, in order."""
        outcomes: Iterator[Outcome] = iter(await self._wait() if self._wait is not None else ())
        return [each if isinstance(each, RestError) else _result(each, next(outcomes)) for each in self._prepared]


async def submit(context: RestContext, identity: Identity, topic: str, prepared: Sequence[Prepared]) -> Group:
    """Returns once the producer has accepted the records. An error for the whole group becomes the result of each
    record."""
    records = [each.record for each in prepared if not isinstance(each, RestError)]
    if not records:
        return Group(prepared, None)
    size = size_of(prepared)
    try:
        wait = await context.producers.submit(identity, topic, records)
    except RestError as refusal:
        return Group([each if isinstance(each, RestError) else refusal for each in prepared], None, size)
    return Group(prepared, wait, size)


def size_of(prepared: Sequence[Prepared]) -> int:
    return sum(each.size for each in prepared if not isinstance(each, RestError))


def _result(encoded: EncodedRecord, outcome: Outcome) -> Result:
    return (encoded, outcome) if isinstance(outcome, Delivered) else RestError(outcome.kind, outcome.message)
