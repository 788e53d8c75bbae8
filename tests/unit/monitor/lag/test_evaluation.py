"""Groups evaluated round after round."""

from dataclasses import replace

import pytest

from kaspar.client.admin.timestamps import RecordAt
from kaspar.monitor.lag.evaluation import RecordTimes
from kaspar.monitor.lag.reading import GroupFilter, Members
from kaspar.monitor.views import Owner, Status
from tests.unit.monitor.lag.offsets import (
    DAY_MS,
    INTERVAL_MS,
    INTERVALS,
    NOW_MS,
    T0,
    T1,
    Rounds,
    listing,
    new_evaluator,
)

MEMBER = Owner("m-1", "client", "/10.0.0.1")


def test_a_consumer_that_keeps_up_is_ok() -> None:
    rounds = Rounds()
    for number in range(30):
        partition = rounds.partition(number * 100, number * 100 + number % 3)
        assert partition.status is Status.OK
    assert (partition.lag, partition.complete) == (29 % 3, 1.0)


def test_a_consumer_that_falls_behind_gets_a_warning_within_a_window() -> None:
    rounds = Rounds()
    statuses = [rounds.partition(number * 10, number * 20 + 1).status for number in range(INTERVALS)]
    assert statuses == [Status.OK] * (INTERVALS - 1) + [Status.WARN]


def test_a_consumer_that_catches_up_is_ok_again() -> None:
    rounds = Rounds()
    for number in range(INTERVALS):
        rounds.partition(number * 10, number * 20 + 1)
    assert rounds.partition(190, 200).status is Status.OK


@pytest.mark.parametrize(("state", "expected"), [("Empty", Status.STOP), ("Stable", Status.STALL)])
def test_a_consumer_without_progress_is_in_error_one_window_later(state: str, expected: Status) -> None:
    rounds = Rounds()
    for number in range(INTERVALS):
        rounds.partition(number * 10, number * 10 + 5)
    statuses = [rounds.partition(90, 200, state=state).status for _ in range(INTERVALS)]
    assert statuses == [Status.OK] * (INTERVALS - 1) + [expected]


def test_a_partition_that_no_member_reads_any_more_has_stopped() -> None:
    rounds = Rounds()
    rounds.evaluator.add_members({"g": Members(1, {T1: MEMBER})})
    for _ in range(INTERVALS + 2):
        group = rounds.evaluate(rounds.read({T0: 1, T1: 1}, {T0: 9, T1: 9}))
    assert group is not None
    assert [each.status for each in group.partitions] == [Status.STOP, Status.STALL]
    assert [each.owner for each in group.partitions] == [None, MEMBER]
    assert (group.status, group.members) == (Status.ERR, 1)


def test_a_consumer_that_goes_back_is_in_error() -> None:
    rounds = Rounds()
    for number in range(INTERVALS):
        rounds.partition(1000 + number * 10, 2000 + number * 10)
    assert rounds.partition(3, 2200).status is Status.REWIND


def test_new_records_for_an_idle_consumer_are_no_lag_for_a_while() -> None:
    rounds = Rounds()
    for _ in range(100):
        rounds.partition(50, 50)
    statuses = {rounds.partition(50, 900, state="Empty").status for _ in range(INTERVALS - 1)}
    assert statuses == {Status.OK}
    assert rounds.partition(50, 900, state="Empty").status is Status.STOP


def test_a_consumer_at_the_last_stable_offset_waits_for_a_transaction_and_is_ok() -> None:
    rounds = Rounds()
    for _ in range(50):
        partition = rounds.partition(70, (200, 70))
        assert partition.status is Status.OK
    assert (partition.lag, partition.stable_lag) == (130, 0)
    for _ in range(INTERVALS + 1):  # the transaction has ended, and nobody reads on
        partition = rounds.partition(70, (200, 200), state="Empty")
    assert (partition.status, partition.stable_lag) == (Status.STOP, 130)


def test_a_group_that_has_read_into_an_open_transaction_is_judged_by_the_high_watermark() -> None:
    rounds = Rounds()
    for number in range(30):  # it reads uncommitted records, and keeps up
        partition = rounds.partition(5_000 + number * 10, (5_003 + number * 10, 100))
        assert partition.status is Status.OK
    for _ in range(INTERVALS + 1):  # and dies
        partition = rounds.partition(5_290, (9_000, 100), state="Empty")
    assert (partition.status, partition.lag, partition.stable_lag) == (Status.STOP, 3_710, 0)


def test_a_group_that_reads_uncommitted_records_and_falls_behind_gets_a_warning() -> None:
    rounds = Rounds()
    statuses = [rounds.partition(200 + number * 10, (220 + number * 30, 100)).status for number in range(INTERVALS)]
    assert statuses == [Status.OK] * (INTERVALS - 1) + [Status.WARN]


def test_where_only_markers_follow_nothing_is_late() -> None:
    rounds = Rounds()
    position = RecordAt(T0, 70)
    for _ in range(50):
        partition = rounds.partition(70, 71, times=RecordTimes({}, frozenset({position})))
        assert partition.status is Status.OK
    assert (partition.lag, partition.lag_seconds) == (1, 0.0)


def test_seconds_are_those_of_the_index_else_those_between_rounds() -> None:
    rounds = Rounds()
    assert rounds.partition(10, 20).lag_seconds is None  # written before the first round
    rounds.partition(20, 20)
    assert rounds.partition(20, 30).lag_seconds == pytest.approx(9, abs=0.1)  # about 9 s of 10 since the round before
    exact = RecordTimes({RecordAt(T0, 20): rounds.now_ms - 4_500})
    assert rounds.partition(20, 30, times=exact).lag_seconds == 4.5
    assert rounds.partition(30, 30).lag_seconds == 0.0


def test_a_clock_ahead_of_the_monitors_gives_no_negative_seconds() -> None:
    rounds = Rounds()
    ahead = RecordTimes({RecordAt(T0, 1): NOW_MS + 60_000})
    assert rounds.partition(1, 2, times=ahead).lag_seconds == 0.0


def test_a_group_sums_its_partitions() -> None:
    rounds = Rounds()
    times = RecordTimes({RecordAt(T0, 5): NOW_MS - 3_000, RecordAt(T1, 1): NOW_MS - 8_000})
    group = rounds.evaluate(rounds.read({T1: 1, T0: 5}, {T0: 50, T1: 11}), times)
    assert group is not None
    assert [each.where for each in group.partitions] == [T0, T1]
    assert (group.total_lag, group.max_lag_seconds, group.complete) == (55, 8.0, 0.0)
    assert group.max_partition is group.partitions[0]


def test_without_its_coordinator_a_group_stays_as_it_was_and_is_stale() -> None:
    rounds = Rounds()
    before = rounds.evaluate(rounds.read({T0: 5}, {T0: 50}))
    assert before is not None
    for _ in range(3):
        now = rounds.evaluate(rounds.read(None, {T0: 70}))
        assert now == replace(before, is_stale=True)
    back = rounds.evaluate(rounds.read({T0: 70}, {T0: 70}))
    assert back is not None
    assert (back.is_stale, back.total_lag) == (False, 0)


def test_without_a_leader_a_partition_stays_as_it_was_and_the_group_is_stale() -> None:
    rounds = Rounds()
    rounds.evaluate(rounds.read({T0: 5, T1: 5}, {T0: 50, T1: 50}))
    group = rounds.evaluate(rounds.read({T0: 10, T1: 10}, {T1: 60}))
    assert group is not None
    assert group.is_stale
    assert [(each.committed_offset, each.lag) for each in group.partitions] == [(5, 45), (10, 50)]


def test_a_new_group_whose_leaders_do_not_respond_is_not_shown_yet() -> None:
    rounds = Rounds()
    assert rounds.evaluate(rounds.read({T0: 5}, {})) is None


def test_a_deleted_group_and_a_deleted_topic_are_forgotten() -> None:
    rounds = Rounds()
    rounds.evaluate(rounds.read({T0: 5, T1: 5}, {T0: 50, T1: 50}))
    group = rounds.evaluate(rounds.read({T0: 5, T1: 5}, {T0: 50}, gone=[T1]))
    assert group is not None
    assert [each.where for each in group.partitions] == [T0]
    partly = replace(rounds.read(None, {}), groups={}, lists_all_groups=False)
    assert rounds.evaluate(partly) is not None  # its broker may only be away
    assert rounds.evaluate(replace(partly, lists_all_groups=True)) is None


def test_after_an_outage_consumers_have_a_window_to_commit_again() -> None:
    rounds = Rounds()
    for number in range(INTERVALS):
        rounds.partition(number * 10, number * 20)
    rounds.now_ms += 30 * INTERVAL_MS  # no broker responds for five minutes
    statuses = [rounds.partition(90, 500, state="Stable").status for _ in range(INTERVALS + 2)]
    assert statuses == [Status.OK] * (INTERVALS + 1) + [Status.STALL]


def test_a_topic_that_was_created_again_has_no_history() -> None:
    rounds = Rounds()
    for number in range(INTERVALS):
        rounds.partition(1_000 + number, 2_000 + number)
    partition = rounds.partition(3, 50)
    assert (partition.status, len(partition.commits)) == (Status.OK, 1)


def test_ends_of_deleted_topics_are_forgotten_when_all_is_read() -> None:
    rounds = Rounds()
    rounds.evaluate(rounds.read({T0: 5}, {T0: 50, T1: 50}))
    incomplete = replace(rounds.read({T0: 5}, {T0: 50}), problems={"group other": "why"})
    rounds.evaluate(incomplete)
    assert set(rounds.evaluator.ends) == {T0, T1}
    rounds.evaluate(rounds.read({T0: 5}, {T0: 50}))
    assert set(rounds.evaluator.ends) == {T0}


def test_offsets_that_were_deleted_are_forgotten() -> None:
    rounds = Rounds()
    rounds.evaluate(rounds.read({T0: 5, T1: 5}, {T0: 50, T1: 50}))
    group = rounds.evaluate(rounds.read({T1: 5}, {T1: 50}))
    assert group is not None
    assert [each.where for each in group.partitions] == [T1]
    assert rounds.evaluate(rounds.read({}, {})) is None


def test_a_group_without_members_that_commits_nothing_expires() -> None:
    rounds = Rounds(new_evaluator(expire_group_ms=DAY_MS))
    rounds.evaluate(rounds.read({T0: 5}, {T0: 50}, state="Empty"))
    rounds.now_ms = NOW_MS + DAY_MS
    assert rounds.evaluate(rounds.read({T0: 5}, {T0: 50}, state="Empty")) is not None
    assert rounds.evaluate(rounds.read({T0: 5}, {T0: 50}, state="Stable")) is not None
    assert rounds.evaluate(rounds.read({T0: 5}, {T0: 50}, state="Empty")) is None
    assert rounds.evaluate(rounds.read({T0: 6}, {T0: 50}, state="Empty")) is not None  # it is back


def test_a_removed_group_begins_anew() -> None:
    rounds = Rounds()
    for number in range(INTERVALS):
        rounds.partition(number, number + 50)
    rounds.evaluator.remove("g")
    assert rounds.partition(20, 90).complete == 0.1


def test_a_lower_minimum_judges_sooner() -> None:
    rounds = Rounds(new_evaluator(minimum_complete=0.2))
    assert rounds.partition(1, 100).status is Status.OK
    assert rounds.partition(2, 200).status is Status.WARN


def test_a_slow_committer_is_no_error_once_its_pace_is_known() -> None:
    """A commit every five minutes, with lag all the time: ten of them make the window."""
    rounds = Rounds()
    statuses = []
    for number in range(200):
        batch = number // 30
        statuses.append(rounds.partition(batch * 100, (batch + 1) * 100 + number % 30 + 1).status)
    assert set(statuses[31:]) == {Status.OK}
    assert INTERVAL_MS * 30 == 300_000


@pytest.mark.parametrize(
    ("allowed", "denied", "accepted"),
    [
        ("", "", ["billing", "console-1"]),
        ("^bill", "", ["billing"]),
        ("", "^console", ["billing"]),
        ("l", "1$", ["billing"]),
    ],
)
def test_lists_choose_groups(allowed: str, denied: str, accepted: list[str]) -> None:
    chosen = GroupFilter(allowed, denied)
    assert [name for name in ("billing", "console-1") if chosen.accepts(name)] == accepted


def test_the_kind_and_the_state_are_those_of_the_listing() -> None:
    rounds = Rounds()
    group = rounds.evaluate(rounds.read({T0: 5}, {T0: 50}, state="Empty"))
    assert group is not None
    assert (group.kind, group.state, group.members) == (listing("g").type.value, "Empty", 0)
