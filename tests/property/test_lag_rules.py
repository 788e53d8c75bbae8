"""What must hold of the status of a group for any history of commits and ends."""

from hypothesis import given
from hypothesis import strategies as st

from kaspar.monitor.views import PartitionLag, Status
from tests.unit.monitor.lag.offsets import INTERVALS, T0, Rounds

STATES = st.sampled_from(["Stable", "Empty", "PreparingRebalance"])
HISTORIES = st.lists(
    st.tuples(
        st.integers(0, 300),  # how many records are written in the round
        st.integers(-50, 300),  # how far the group moves; beyond the end it stands there
        STATES,
        st.integers(0, 300),  # how many records the oldest open transaction holds back
    ),
    max_size=4 * INTERVALS,
)
History = list[tuple[int, int, str, int]]


def run(history: History, *, rounds: Rounds | None = None) -> list[PartitionLag]:
    rounds = rounds or Rounds()
    offset = end = 1_000
    evaluated = []
    for written, moved, state, held_back in history:
        end += written
        offset = max(min(offset + moved, end), 0)
        evaluated.append(rounds.partition(offset, (end, max(end - held_back, 0)), state=state))
    return evaluated


@given(HISTORIES)
def test_a_group_that_has_always_committed_the_end_is_ok(history: History) -> None:
    for partition in run([(written, 10**6, state, 0) for written, _, state, _ in history]):
        assert (partition.status, partition.lag, partition.lag_seconds) == (Status.OK, 0, 0.0)


@given(HISTORIES)
def test_a_partition_without_anything_stable_to_read_is_ok(history: History) -> None:
    for partition in run(history):
        assert partition.stable_lag <= partition.lag
        if partition.stable_lag == 0 and partition.committed_offset <= partition.stable_offset:
            assert partition.status is Status.OK


@given(HISTORIES)
def test_a_commit_read_again_at_the_same_time_changes_nothing(history: History) -> None:
    """A monitor that asks twice in a round sees the same: only time and new commits count."""
    once, often = Rounds(), Rounds()
    offset = end = 1_000
    for written, moved, state, _ in history:
        end += written
        offset = max(min(offset + moved, end), 0)
        expected = once.partition(offset, end, state=state)
        for _ in range(3):
            often.now_ms = once.now_ms - 10_000
            often.evaluator.observe(often.read({T0: offset}, {T0: end}, state=state))
        repeated = often.evaluator.evaluate(often.read({T0: offset}, {T0: end}, state=state))["g"].partitions[0]
        assert [commit.offset for commit in repeated.commits] == [commit.offset for commit in expected.commits]
        assert repeated.lag == expected.lag


@given(HISTORIES)
def test_a_group_is_stopped_only_without_members_and_stalls_only_with_them(history: History) -> None:
    for (_, _, state, _), partition in zip(history, run(history), strict=True):
        if partition.status is Status.STOP:
            assert state == "Empty"
        if partition.status is Status.STALL and partition.complete < 1:
            assert state != "Empty"


@given(HISTORIES)
def test_within_the_first_window_no_group_is_in_error(history: History) -> None:
    """Nothing was seen for long enough: a monitor that starts reports no errors that it cannot know of."""
    for partition in run(history[: INTERVALS - 1]):
        assert partition.status is Status.OK


@given(HISTORIES)
def test_a_dead_group_with_lag_is_reported_within_two_windows(history: History) -> None:
    """Whatever it did before, with a commit in each round or none."""
    rounds = Rounds()
    last = run([(100, moved, state, 0) for _, moved, state, _ in history[-INTERVALS:]], rounds=rounds)
    offset, end = (last[-1].committed_offset, last[-1].end_offset) if last else (0, 10)
    for _ in range(2 * INTERVALS + 1):
        end += 1
        status = rounds.partition(offset, end, state="Empty").status
    assert status is Status.STOP


@given(HISTORIES)
def test_a_dead_group_that_has_read_into_an_open_transaction_is_reported_within_two_windows(history: History) -> None:
    rounds = Rounds()
    last = run(history[-INTERVALS:], rounds=rounds)
    offset, end = (last[-1].committed_offset, last[-1].end_offset) if last else (10, 10)
    for _ in range(2 * INTERVALS + 1):
        end += 1
        partition = rounds.partition(offset, (end, offset - 1), state="Empty")
    assert (partition.status, partition.stable_lag) == (Status.STOP, 0)
