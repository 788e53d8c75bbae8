"""Whom the protocol speaks to: the decision log and the coordinators of transactions, as it sees them; and its errors.

The protocol (ownership.py, settling.py, publishing.py) knows nothing of sockets: it runs against brokers, and in tests
against a model that crashes at every step.
"""

import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from kaspar.base.errors import ErrorCode, KasparError
from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.client.transactions import ANY_AGE, DescribedTransaction, Ending
from kaspar.spark.exactly_once.decisions import Decision, LogRecord, QueryState


class Superseded(KasparError):
    """Another run has taken the query over: this one may publish nothing more."""


class NameTaken(KasparError):
    """The query's name belongs to another stream, or this write is the second of a batch under that name."""


class DecidedButAborted(KasparError):
    """A transaction that was decided to be committed was aborted, by a timeout or by hand; or whether it was cannot be
    told any more."""

    def __init__(self, sentence: str, transactions: int) -> None:
        super().__init__(sentence)
        self.transactions = transactions
        """How many."""


class DecidedNotCommitted(KasparError):
    """The batch is decided, so it will be visible, and the brokers do not answer to make it so now."""


class LogLost(KasparError):
    """The decision log has lost what it knew: what was decided before cannot be told any more."""


class NotPublished(KasparError):
    """The batch cannot be published as it was written, and nothing of it was: it has to be written again."""


class Log(Protocol):
    def state(self, query: str) -> QueryState:
        """The verdict as of the last look; a first look if there was none."""

    def look(self, query: str) -> QueryState:
        """The verdict of all that is in the log now."""

    def pending(self) -> list[Decision]:
        """The decisions of all queries that may not be carried out yet, of all that is in the log now."""

    def append(self, query: str, records: Sequence[LogRecord]) -> QueryState:
        """Append, all or nothing, and read up to there. If that fails, they may come to be in the log or not."""


class Coordinator(Protocol):
    def begin(self, transactional_id: str) -> ProducerIdAndEpoch:
        """A pair to write with."""

    def prepare(self, transactional_id: str, producer: ProducerIdAndEpoch) -> ProducerIdAndEpoch:
        """All is written: the pair that ends it. Where transactions cannot be prepared it is the same pair."""

    def end(self, endings: Sequence[Ending], *, is_urgent: bool = True) -> list[ErrorCode]:
        """Asked until it is answered; once, if it is not urgent."""

    def describe(self, transactional_ids: Collection[str]) -> Mapping[str, DescribedTransaction]: ...

    def open_transactions(self, query: str, *, older_than_ms: int = ANY_AGE) -> list[str]:
        """The ids of the query's transactions that are open, prepared or not; those that began longer ago than that, by
        the clocks of their coordinators."""

    def known_transactions(self, query: str) -> list[str]:
        """The ids of all transactions of the query that the brokers remember, open or not."""

    def fence(self, transactional_ids: Collection[str]) -> None:
        """Abort whatever is open under these ids; whoever has them cannot go on."""


@dataclass(frozen=True, slots=True)
class Parties:
    log: Log
    coordinator: Coordinator
    process: str
    """A random name of this process."""

    @property
    def nonce(self) -> str:
        """Another each time: makes a record unique. A record that is appended again, because its first append was not
        answered, and then is in the log twice, must not take its own place: what stands between would be judged
        otherwise when the first is compacted away."""
        return f"{self.process}.{secrets.token_hex(4)}"
