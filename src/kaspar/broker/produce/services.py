"""The services that every Produce request needs, passed as one object."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from kaspar.base.clock import Clock
from kaspar.base.errors import Refused
from kaspar.broker.partitions import Partitions
from kaspar.broker.produce.appender import Appender
from kaspar.broker.produce.results import Refusals
from kaspar.broker.produce.unverified import UnverifiedBatches
from kaspar.network.exchange import Exchange
from kaspar.protocol.shapes import Topic


class WaitingProduce(Protocol):
    """A request whose response waits."""

    @property
    def waits(self) -> int:
        """The number of its batches for which it waits."""
        ...

    def give_up(self, refusal: Refused) -> None:
        """Stop waiting for commits."""
        ...


class ProduceAccess(Protocol):
    def denied(self, exchange: Exchange, topics: Iterable[Topic]) -> Collection[Topic]:
        """The topics that the client may not write to. Unknown ids are not among them."""
        ...

    def may_use(self, exchange: Exchange, transactional_id: str) -> bool: ...


@dataclass(frozen=True, slots=True)
class ProduceServices:
    partitions: Partitions
    appender: Appender
    unverified: UnverifiedBatches
    refusals: Refusals
    clock: Clock
    access: "ProduceAccess | None"
    """None without an authorizer."""
    waiting: set[WaitingProduce] = field(default_factory=set)
