"""The decision log and the transaction coordinators, as narrow interfaces for the protocol.

The protocol (ownership.py, settling.py, publishing.py) does no I/O itself: it runs against brokers, and in tests
against a model that crashes at every step.
"""

import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.client.transactions import ANY_AGE, DescribedTransaction, Ending
from kaspar.exactly_once.decisions import BatchDecision, LogRecord, QueryState


class AnyDecisionLog(Protocol):
    """The decision log of a cluster (decision_log.py), or a model of it."""

    def state(self, query: str) -> QueryState:
        """The state as of the last read; reads the log if it was never read."""

    def read_to_end(self, query: str) -> QueryState:
        """Read to the end of the log, and return the state."""

    def pending(self) -> list[BatchDecision]:
        """Read to the end of the log, and return the pending decisions of all queries."""

    def append(self, query: str, records: Sequence[LogRecord]) -> QueryState:
        """Append all records or none, and read up to them. If this raises, they may still end up in the log."""


class Coordinator(Protocol):
    def begin(self, transactional_id: str) -> ProducerIdAndEpoch:
        """Send InitProducerId; returns the producer id and epoch to write with."""

    def prepare(self, transactional_id: str, producer: ProducerIdAndEpoch) -> ProducerIdAndEpoch:
        """Prepare a transaction whose records are all written. Returns the producer to end it with, which is the same
        one if the brokers do not prepare transactions."""

    def end(self, endings: Sequence[Ending], *, is_urgent: bool = True) -> list[ErrorCode]:
        """Send EndTxn for each. If urgent, it is retried until there is a response; otherwise it is tried once."""

    def describe(self, transactional_ids: Collection[str]) -> Mapping[str, DescribedTransaction]: ...

    def open_transactions(self, query: str, *, older_than_ms: int = ANY_AGE) -> list[str]:
        """The ids of the query's open transactions, prepared or not, that are older than that according to the clocks
        of their coordinators."""

    def known_transactions(self, query: str) -> list[str]:
        """All transactional ids of the query that the brokers know, open or not."""

    def fence(self, transactional_ids: Collection[str]) -> None:
        """Abort the open transactions with these ids, and fence their producers."""


@dataclass(frozen=True, slots=True)
class Participants:
    log: AnyDecisionLog
    coordinator: Coordinator
    process: str
    """A random name for this process."""

    @property
    def nonce(self) -> str:
        """A new random text on each access, to make record keys unique. A record that is appended again because its
        first append had no response may be in the log twice. If both had the same key, compaction would delete the
        first one and so change the meaning of the records between them."""
        return f"{self.process}.{secrets.token_hex(4)}"
