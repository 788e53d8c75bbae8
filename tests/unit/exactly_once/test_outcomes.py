"""The outcome of a decided transaction whose commit was refused: its state decides, not the refusal alone."""

import pytest

from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.client.transactions import DescribedTransaction
from kaspar.exactly_once.outcomes import Outcome, is_still_open, outcome_of

PAIR = ProducerIdAndEpoch(7, 3)


def described(state: str, producer: ProducerIdAndEpoch = PAIR) -> DescribedTransaction:
    return DescribedTransaction("id", state, 60_000, 0, producer, ())


@pytest.mark.parametrize(
    ("state", "outcome"),
    [
        ("PrepareCommit", Outcome.COMMITTED),
        ("CompleteCommit", Outcome.COMMITTED),
        ("PrepareAbort", Outcome.ABORTED),
        ("CompleteAbort", Outcome.ABORTED),
        ("PrepareEpochFence", Outcome.ABORTED),
        ("Empty", Outcome.UNKNOWN),
        ("Ongoing", Outcome.UNKNOWN),
    ],
)
def test_the_state_decides_its_outcome(state: str, outcome: Outcome) -> None:
    assert outcome_of(described(state)) is outcome


def test_the_outcome_of_a_forgotten_transaction_is_unknown() -> None:
    assert outcome_of(None) is Outcome.UNKNOWN


def test_a_transaction_is_still_open_while_it_is_as_its_task_left_it() -> None:
    assert is_still_open(described("Ongoing"), PAIR)
    assert not is_still_open(described("Ongoing", ProducerIdAndEpoch(7, 4)), PAIR)
    assert not is_still_open(described("CompleteAbort"), PAIR)
    assert not is_still_open(None, PAIR)
