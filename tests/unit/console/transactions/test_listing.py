"""Transactions: their phases, and which of them are shown."""

import pytest

from kaspar.client.admin.transactions import TransactionListing
from kaspar.console.transactions.listing import Phase, SortKey, TransactionQuery, phase_of, select

LISTED = [
    TransactionListing("Payments-1", 1, 11, "Ongoing"),
    TransactionListing("payments-2", 2, 5, "PrepareCommit"),
    TransactionListing("audit", 1, 70, "CompleteAbort"),
    TransactionListing("empty", 2, 8, "Empty"),
]


@pytest.mark.parametrize(
    ("state", "phase"),
    [
        ("Ongoing", Phase.OPEN),
        ("PrepareCommit", Phase.PREPARED),
        ("PrepareAbort", Phase.PREPARED),
        ("PrepareEpochFence", Phase.PREPARED),
        ("CompleteCommit", Phase.ENDED),
        ("Empty", Phase.ENDED),
        ("Dead", Phase.ENDED),
        ("of a later Kafka", Phase.ENDED),
    ],
)
def test_the_phase_follows_from_the_state(state: str, phase: Phase) -> None:
    assert phase_of(state) is phase


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (TransactionQuery(), ["Payments-1", "audit", "empty", "payments-2"]),
        (TransactionQuery(search="PAY"), ["Payments-1", "payments-2"]),
        (TransactionQuery(search="70"), ["audit"]),
        (TransactionQuery(phase=Phase.PREPARED), ["payments-2"]),
        (TransactionQuery(sort=SortKey.PRODUCER_ID), ["payments-2", "empty", "Payments-1", "audit"]),
        (TransactionQuery(sort=SortKey.PRODUCER_ID, descending=True, offset=1, limit=2), ["Payments-1", "empty"]),
    ],
)
def test_what_is_shown(query: TransactionQuery, found: list[str]) -> None:
    shown, matching = select(LISTED, query)
    assert [each.transactional_id for each in shown] == found
    assert matching >= len(shown)
