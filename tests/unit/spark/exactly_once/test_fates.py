"""What became of a decided transaction whose commit was refused: its state tells, the refusal alone does not."""

import pytest

from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.client.transactions import DescribedTransaction
from kaspar.spark.exactly_once.fates import Fate, fate_of, is_still_open

PAIR = ProducerIdAndEpoch(7, 3)


def described(state: str, producer: ProducerIdAndEpoch = PAIR) -> DescribedTransaction:
    return DescribedTransaction("id", state, 60_000, 0, producer, ())


@pytest.mark.parametrize(
    ("state", "fate"),
    [
        ("PrepareCommit", Fate.COMMITTED),
        ("CompleteCommit", Fate.COMMITTED),
        ("PrepareAbort", Fate.ABORTED),
        ("CompleteAbort", Fate.ABORTED),
        ("PrepareEpochFence", Fate.ABORTED),
        ("Empty", Fate.UNKNOWN),
        ("Ongoing", Fate.UNKNOWN),
    ],
)
def test_the_state_tells_what_became_of_it(state: str, fate: Fate) -> None:
    assert fate_of(described(state)) is fate


def test_what_was_forgotten_cannot_be_told() -> None:
    assert fate_of(None) is Fate.UNKNOWN


def test_a_transaction_is_still_open_while_it_is_as_its_task_left_it() -> None:
    assert is_still_open(described("Ongoing"), PAIR)
    assert not is_still_open(described("Ongoing", ProducerIdAndEpoch(7, 4)), PAIR)
    assert not is_still_open(described("CompleteAbort"), PAIR)
    assert not is_still_open(None, PAIR)
