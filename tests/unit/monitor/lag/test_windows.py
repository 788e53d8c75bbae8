"""What is remembered between rounds."""

from dataclasses import replace

import pytest

from kaspar.client.admin.group_offsets import GroupOffset
from kaspar.monitor.lag.windows import CommitWindow, Ends, EndWindow, WindowSize, lags
from tests.unit.monitor.lag.offsets import NOW_MS


def ends_of(*ends: int) -> EndWindow:
    window = EndWindow(10)
    for end in ends:
        window.observe(Ends(end, end), NOW_MS)
    return window


NINE = ends_of(9)
THREE = WindowSize(3, 0, longest_gap_ms=1_000)


def seen(window: CommitWindow) -> list[tuple[int, int]]:
    return [(commit.offset, commit.at_ms - NOW_MS) for commit in window.commits]


def test_the_same_commit_seen_again_is_not_another() -> None:
    window = CommitWindow(THREE)
    for at_ms in (0, 10, 20):
        window.observe(GroupOffset(5, None, ""), NINE, NOW_MS + at_ms)
    assert seen(window) == [(5, 0)]
    window.observe(GroupOffset(5, None, "other metadata"), NINE, NOW_MS + 30)
    window.observe(GroupOffset(5, 2, "other metadata"), NINE, NOW_MS + 40)
    assert seen(window) == [(5, 0), (5, 30), (5, 40)]
    assert window.changed_at_ms == NOW_MS + 40


def test_a_window_keeps_the_last_commits() -> None:
    window = CommitWindow(THREE)
    for number in range(5):
        window.observe(GroupOffset(number, None, ""), NINE, NOW_MS + number)
    assert seen(window) == [(2, 2), (3, 3), (4, 4)]


def test_commits_in_quick_succession_replace_each_other_and_keep_the_first_time() -> None:
    window = CommitWindow(replace(THREE, min_distance_ms=100))
    for at_ms in (0, 60, 99, 100, 150, 200):
        window.observe(GroupOffset(at_ms, None, ""), NINE, NOW_MS + at_ms)
    assert seen(window) == [(99, 0), (150, 100), (200, 200)]


def test_a_window_is_begun_anew_after_a_time_in_which_nothing_could_be_read() -> None:
    window = CommitWindow(THREE)
    for offset, at_ms in ((1, 0), (2, 500), (2, 1_500)):
        window.observe(GroupOffset(offset, None, ""), NINE, NOW_MS + at_ms)
    assert seen(window) == [(1, 0), (2, 500)]
    window.observe(GroupOffset(2, None, ""), NINE, NOW_MS + 2_501)
    assert (seen(window), window.changed_at_ms) == ([(2, 2_501)], NOW_MS + 500)


@pytest.mark.parametrize(
    ("ends", "offset", "expected"), [((9,), 9, False), ((5, 9), 4, False), ((5, 9), 5, True), ((5, 9, 12), 8, False)]
)
def test_a_commit_keeps_up_that_has_reached_the_end_of_the_round_before(
    ends: tuple[int, ...], offset: int, expected: bool
) -> None:
    window = CommitWindow(THREE)
    window.observe(GroupOffset(offset, None, ""), ends_of(*ends), NOW_MS)
    assert window.commits[0].kept_up is expected


@pytest.mark.parametrize(
    ("offset", "ends", "expected"),
    [(5, (9, 9), (4, 4)), (5, (9, 5), (4, 0)), (5, (9, 3), (4, 0)), (12, (9, 9), (0, 0))],
    ids=["behind", "at an open transaction", "beyond its begin", "newer than the end"],
)
def test_lag_is_never_negative(offset: int, ends: tuple[int, int], expected: tuple[int, int]) -> None:
    assert lags(offset, Ends(*ends)) == expected


def test_ends_tell_between_rounds_when_a_record_was_written() -> None:
    window = EndWindow(10)
    for at_ms, end in ((0, 100), (1000, 100), (2000, 200)):
        window.observe(Ends(end, end), NOW_MS + at_ms)
    assert window.written_at_ms(99) is None  # before the first round
    assert window.written_at_ms(100) == NOW_MS + 1000 + 10
    assert window.written_at_ms(149) == NOW_MS + 1500
    assert window.written_at_ms(199) == NOW_MS + 2000
    assert window.written_at_ms(200) is None  # not written yet


def test_an_idle_log_is_remembered_by_two_times() -> None:
    window = EndWindow(10)
    for number in range(500):
        window.observe(Ends(7, 7), NOW_MS + number)
    window.observe(Ends(8, 8), NOW_MS + 500)
    assert window.written_at_ms(7) == NOW_MS + 500


def test_a_log_that_grows_evenly_is_remembered_by_few_times() -> None:
    window = EndWindow(10)
    for number in range(5000):
        window.observe(Ends(number, number), NOW_MS + number * 10)
    assert len(window._seen_ends) <= 64
    for offset in (5, 1000, 4000, 4990):
        assert window.written_at_ms(offset) == pytest.approx(NOW_MS + (offset + 1) * 10, abs=1)


def test_a_log_that_begins_again_forgets_its_ends() -> None:
    window = EndWindow(3)
    for number, end in enumerate((100, 110, 5)):
        window.observe(Ends(end, end), NOW_MS + number)
    assert list(window.recent_stable) == [5]
    assert window.written_at_ms(4) is None


def test_only_recent_ends_count_as_recent() -> None:
    window = EndWindow(3)
    for number in range(5):
        window.observe(Ends(number, number), NOW_MS + number)
    assert list(window.recent_stable) == [2, 3, 4]
