"""The table of transitions: it is whole, Kafka's, and drawn in the docs."""

import re
from pathlib import Path

import pytest

from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.transactions.state import TRANSITIONS, Transaction, TransactionEvent, TransactionState

S = TransactionState

# For each state, those that may come before it: org.apache.kafka.coordinator.transaction.TransactionState in Kafka 4.3.
KAFKA_VALID_PREVIOUS_STATES = {
    S.EMPTY: {S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT},
    S.ONGOING: {S.ONGOING, S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT},
    S.PREPARE_COMMIT: {S.ONGOING},
    S.PREPARE_ABORT: {S.ONGOING, S.PREPARE_EPOCH_FENCE, S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT},
    S.COMPLETE_COMMIT: {S.PREPARE_COMMIT},
    S.COMPLETE_ABORT: {S.PREPARE_ABORT},
    S.DEAD: {S.EMPTY, S.COMPLETE_ABORT, S.COMPLETE_COMMIT},
    S.PREPARE_EPOCH_FENCE: {S.ONGOING},
}


def test_every_state_is_in_the_table() -> None:
    assert set(TRANSITIONS) == set(TransactionState)


def test_without_prepared_the_table_is_kafkas() -> None:
    before: dict[TransactionState, set[TransactionState]] = {state: set() for state in S if state is not S.PREPARED}
    for state, following in TRANSITIONS.items():
        for after in following.values():
            if S.PREPARED not in (state, after):
                before[after].add(state)
    assert before == KAFKA_VALID_PREVIOUS_STATES


def test_a_prepared_transaction_is_an_ongoing_one_to_which_nothing_is_added() -> None:
    ongoing = dict(TRANSITIONS[S.ONGOING])
    del ongoing[TransactionEvent.ADD_PARTITIONS]
    assert TRANSITIONS[S.PREPARED] == ongoing


def test_what_the_table_does_not_allow_is_a_bug() -> None:
    transaction = Transaction(transactional_id="x", producer=ProducerIdAndEpoch(1, 0), timeout_ms=1, last_update_ms=0)
    with pytest.raises(AssertionError, match="no MARKERS_WRITTEN may come now"):
        transaction.completed(0)


def test_the_docs_have_the_table_as_it_is() -> None:
    page = (Path(__file__).parents[3] / "docs" / "transactions.md").read_text()
    rows = set(re.findall(r"^\| `(\w+)` \| (.+?) \| `(\w+)` \|$", page, re.MULTILINE))
    assert rows == {
        (state.value, event.value, after.value)
        for state, following in TRANSITIONS.items()
        for event, after in following.items()
    }
