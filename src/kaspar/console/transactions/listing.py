"""The transactional ids of all coordinators. Only those on the page are described, for times, epochs and partitions."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from kaspar.base.errors import ErrorCode, Refused
from kaspar.client.admin.session import Admin
from kaspar.client.admin.transactions import TransactionDescription, TransactionListing, describe_transactions
from kaspar.console.problems import NotThere

_OPEN: Final = frozenset({"Ongoing"})
_PREPARED: Final = frozenset({"PrepareCommit", "PrepareAbort", "PrepareEpochFence"})
TWO_PHASE_TIMEOUT_MS: Final = (1 << 31) - 1
"""The timeout that brokers report for a transaction that never times out (KIP-939)."""


class Phase(StrEnum):
    OPEN = "open"
    PREPARED = "prepared"
    """The outcome is decided, and is being written to the partitions."""
    ENDED = "ended"


class SortKey(StrEnum):
    TRANSACTIONAL_ID = "transactional_id"
    STATE = "state"
    PRODUCER_ID = "producer_id"
    COORDINATOR_ID = "coordinator_id"


@dataclass(frozen=True, slots=True)
class TransactionQuery:
    search: str = ""
    """A part of the transactional id, or a producer id."""
    phase: Phase | None = None
    sort: SortKey = SortKey.TRANSACTIONAL_ID
    descending: bool = False
    offset: int = 0
    limit: int = 50


@dataclass(frozen=True, slots=True)
class TransactionView:
    transactional_id: str
    state: str
    phase: Phase
    producer_id: int
    coordinator_id: int
    producer_epoch: int | None = None
    """Like all that follows, None or empty if the transaction cannot be described."""
    start_time_ms: int | None = None
    timeout_ms: int | None = None
    is_two_phase: bool = False
    """Whether it never times out, because another system decides its end (KIP-939)."""
    partitions: tuple[str, ...] = ()
    """The partitions without a marker of its outcome."""


@dataclass(frozen=True, slots=True)
class TransactionPage:
    rows: tuple[TransactionView, ...]
    matching: int
    total: int
    phases: Mapping[str, int]


def phase_of(state: str) -> Phase:
    if state in _OPEN:
        return Phase.OPEN
    return Phase.PREPARED if state in _PREPARED else Phase.ENDED


def select(listed: Sequence[TransactionListing], query: TransactionQuery) -> tuple[list[TransactionListing], int]:
    """The transactional ids of the page, and the number of those that match."""
    matching = sorted((each for each in listed if _matches(each, query)), key=lambda each: each.transactional_id)
    matching.sort(key=_SORTED_BY[query.sort], reverse=query.descending)
    return matching[query.offset : query.offset + query.limit], len(matching)


def page(admin: Admin, listed: Sequence[TransactionListing], query: TransactionQuery) -> TransactionPage:
    shown, matching = select(listed, query)
    described = describe_transactions(admin, [each.transactional_id for each in shown])
    rows = tuple(_view(each, described[each.transactional_id]) for each in shown)
    return TransactionPage(rows, matching, len(listed), Counter(phase_of(each.state).value for each in listed))


def describe(admin: Admin, transactional_id: str) -> TransactionView:
    """Read one transaction. Raises Refused and NotThere."""
    found = describe_transactions(admin, [transactional_id])[transactional_id]
    if isinstance(found, Refused):
        if found.code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            raise NotThere(f"There is no transactional id {transactional_id}.")
        raise found
    return _described(found)


def _matches(listing: TransactionListing, query: TransactionQuery) -> bool:
    return (query.phase is None or phase_of(listing.state) is query.phase) and (
        query.search.casefold() in listing.transactional_id.casefold() or query.search == str(listing.producer_id)
    )


def _view(listing: TransactionListing, described: TransactionDescription | Refused) -> TransactionView:
    if not isinstance(described, Refused):
        return _described(described)
    state = listing.state
    return TransactionView(
        listing.transactional_id, state, phase_of(state), listing.producer_id, listing.coordinator_id
    )


def _described(found: TransactionDescription) -> TransactionView:
    return TransactionView(
        found.transactional_id,
        found.state,
        phase_of(found.state),
        found.producer.producer_id,
        found.coordinator_id,
        found.producer.producer_epoch,
        found.start_time_ms,
        found.timeout_ms,
        found.timeout_ms == TWO_PHASE_TIMEOUT_MS,
        tuple(map(str, sorted(found.partitions))),
    )


_SORTED_BY: Final[Mapping[SortKey, Callable[[TransactionListing], Any]]] = {
    SortKey.TRANSACTIONAL_ID: lambda each: each.transactional_id,
    SortKey.STATE: lambda each: each.state,
    SortKey.PRODUCER_ID: lambda each: each.producer_id,
    SortKey.COORDINATOR_ID: lambda each: each.coordinator_id,
}
