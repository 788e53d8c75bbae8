"""Burrow's rules, one table for each."""

from dataclasses import replace

import pytest

from kaspar.monitor.lag.rules import (
    completeness,
    group_status,
    had_no_lag,
    has_rewound,
    has_stalled,
    has_stopped,
    lag_never_decreased,
    partition_status,
    was_at_end,
)
from kaspar.monitor.views import Commit, Status
from tests.unit.monitor.lag.offsets import INTERVAL_MS, NOW_MS, THRESHOLDS, WINDOW_MS, commits

GROWING = [(number, 10 + number) for number in range(10)]
SHRINKING = [(number * 20, 100 - number) for number in range(10)]
STILL = [(5, 10 + number) for number in range(10)]


def status(
    window: list[Commit],
    *,
    lag: int = 10,
    ends: tuple[int, ...] = (),
    is_owned: bool = True,
    after_ms: int = 0,
) -> Status:
    return partition_status(
        window, ends or (10**6,), lag, is_owned=is_owned, now_ms=NOW_MS + after_ms, thresholds=THRESHOLDS
    )


@pytest.mark.parametrize(("lags", "expected"), [((1, 2, 3), False), ((1, 0, 3), True), ((0,), True)])
def test_rule_1_no_lag_at_some_point_of_the_window(lags: tuple[int, ...], expected: bool) -> None:
    assert had_no_lag(commits(*((number, lag) for number, lag in enumerate(lags)))) is expected


@pytest.mark.parametrize(
    ("offsets", "expected"),
    [((1, 2, 3), False), ((1, 1, 1), False), ((1, 3, 2), True), ((3, 2, 9), True), ((1,), False)],
)
def test_rule_2_an_offset_smaller_than_the_one_before(offsets: tuple[int, ...], expected: bool) -> None:
    assert has_rewound(commits(*((offset, 1) for offset in offsets))) is expected


@pytest.mark.parametrize(
    ("after_ms", "shortest_ms", "expected"),
    [
        (0, 0, False),
        (3 * INTERVAL_MS, 0, False),
        (3 * INTERVAL_MS + 1, 0, True),
        (3 * INTERVAL_MS + 1, WINDOW_MS, False),
        (WINDOW_MS + 1, WINDOW_MS, True),
    ],
)
def test_rule_3_the_last_commit_is_longer_ago_than_the_window_is_long(
    after_ms: int, shortest_ms: int, expected: bool
) -> None:
    window = commits((1, 1), (2, 1), (3, 1), (4, 1))
    assert has_stopped(window, NOW_MS + after_ms, shortest_ms) is expected


@pytest.mark.parametrize(
    ("offsets", "expected"), [((2, 2, 2), True), ((2, 2, 3), False), ((3, 2, 2), False), ((2,), True)]
)
def test_rule_4_commits_of_the_same_offset(offsets: tuple[int, ...], expected: bool) -> None:
    assert has_stalled(commits(*((offset, 1) for offset in offsets))) is expected


@pytest.mark.parametrize(
    ("lags", "expected"), [((1, 2, 3), True), ((2, 2, 2), True), ((1, 3, 2), False), ((3, 2, 9), False)]
)
def test_rule_5_lag_that_never_decreases(lags: tuple[int, ...], expected: bool) -> None:
    assert lag_never_decreased(commits(*((number, lag) for number, lag in enumerate(lags)))) is expected


@pytest.mark.parametrize(("ends", "expected"), [((11, 12), False), ((10, 12), True), ((9, 30), True), ((), False)])
def test_what_was_the_end_a_moment_ago_is_not_late(ends: tuple[int, ...], expected: bool) -> None:
    assert was_at_end(10, ends) is expected


@pytest.mark.parametrize(
    ("offsets_and_lags", "expected"),
    [
        (GROWING, Status.WARN),
        (SHRINKING, Status.OK),
        (STILL, Status.STALL),
        ([*GROWING[:9], (3, 30)], Status.REWIND),
        ([*GROWING[:5], (50, 0), *[(60 + number, 20 + number) for number in range(4)]], Status.OK),
        ([(5, 0), *[(4 - number, 9) for number in range(9)]], Status.OK),
    ],
    ids=["falls behind", "catches up", "commits the same", "goes back", "had no lag", "no lag before it went back"],
)
def test_a_complete_window(offsets_and_lags: list[tuple[int, int]], expected: Status) -> None:
    assert status(commits(*offsets_and_lags)) is expected


def test_without_lag_now_nothing_else_counts() -> None:
    for window in (GROWING, STILL, [*GROWING[:9], (3, 30)]):
        assert status(commits(*window), lag=0, after_ms=10 * WINDOW_MS) is Status.OK


def test_a_partition_without_commits_for_long_is_stopped_or_stalls_if_a_member_owns_it() -> None:
    longer = 9 * INTERVAL_MS + 1
    for window in (GROWING, SHRINKING, [(9, 0)] * 10):
        assert status(commits(*window), is_owned=False, after_ms=longer) is Status.STOP
        assert status(commits(*window), is_owned=True, after_ms=longer) is Status.STALL
        assert status(commits(*window), is_owned=False, after_ms=longer - 1) is not Status.STOP


def test_it_is_not_stopped_while_its_last_commit_was_the_end_recently() -> None:
    window = commits(*SHRINKING)
    last = window[-1].offset
    assert status(window, ends=(last, last + 500), is_owned=False, after_ms=WINDOW_MS) is Status.OK
    assert status(window, ends=(last + 1, last + 500), is_owned=False, after_ms=WINDOW_MS) is Status.STOP


@pytest.mark.parametrize("window", [GROWING[:9], STILL[:9], [(5, 9), (4, 9)], [(5, 9)]])
def test_a_window_that_is_not_complete_shows_nothing_but_a_stop(window: list[tuple[int, int]]) -> None:
    assert status(commits(*window), is_owned=False, after_ms=WINDOW_MS) is Status.OK
    assert status(commits(*window), is_owned=False, after_ms=WINDOW_MS + 1) is Status.STOP


def test_a_consumer_less_than_a_round_behind_is_not_slow() -> None:
    window = commits(*GROWING)
    assert status(window) is Status.WARN
    assert status([*window[:-1], replace(window[-1], kept_up=True)]) is Status.OK


def test_nothing_was_committed() -> None:
    assert status([]) is Status.OK


@pytest.mark.parametrize(("count", "expected"), [(0, 0.0), (1, 0.1), (9, 0.9), (10, 1.0)])
def test_completeness(count: int, expected: float) -> None:
    assert completeness(commits(*GROWING[:count]), 10) == expected


@pytest.mark.parametrize(
    ("partitions", "expected"),
    [
        ((), Status.OK),
        ((Status.OK, Status.OK), Status.OK),
        ((Status.OK, Status.WARN), Status.WARN),
        ((Status.WARN, Status.STOP), Status.ERR),
        ((Status.STALL,), Status.ERR),
        ((Status.OK, Status.REWIND), Status.ERR),
    ],
)
def test_a_group_has_the_worst_status_and_err_for_all_errors(partitions: tuple[Status, ...], expected: Status) -> None:
    assert group_status(partitions) is expected
