"""A clock for what cannot be undone believes a jump ahead only when the new time has lasted."""

import pytest

from kaspar.base.clock import ManualClock
from kaspar.base.patient_clock import MAX_ABSENCE_MS, MAX_JUMP_MS, PATIENCE_MS, PatientClock

NOW_MS = 1_700_000_000_000
MINUTE_MS = 60_000
YEAR_MS = 365 * 24 * 60 * MINUTE_MS


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_MS)


@pytest.fixture
def patient(clock: ManualClock) -> PatientClock:
    return PatientClock(clock)


def test_it_goes_as_the_clock_goes(clock: ManualClock, patient: PatientClock) -> None:
    assert patient.now_ms() == NOW_MS
    clock.advance(3 * PATIENCE_MS)
    assert patient.now_ms() == NOW_MS + 3 * PATIENCE_MS
    assert patient.monotonic() == clock.monotonic()


def test_it_follows_small_corrections_at_once(clock: ManualClock, patient: PatientClock) -> None:
    clock.jump(MAX_JUMP_MS)
    assert patient.now_ms() == NOW_MS + MAX_JUMP_MS


def test_it_follows_a_jump_back_at_once(clock: ManualClock, patient: PatientClock) -> None:
    clock.jump(-YEAR_MS)
    assert patient.now_ms() == NOW_MS - YEAR_MS


def test_jump_ahead_is_ignored_at_first(clock: ManualClock, patient: PatientClock) -> None:
    clock.jump(YEAR_MS)
    assert patient.now_ms() == NOW_MS
    clock.advance(PATIENCE_MS - 1)
    assert patient.now_ms() == NOW_MS + PATIENCE_MS - 1


def test_a_jump_that_has_lasted_is_believed(clock: ManualClock, patient: PatientClock) -> None:
    clock.jump(YEAR_MS)
    patient.now_ms()
    clock.advance(PATIENCE_MS)
    assert patient.now_ms() == NOW_MS + YEAR_MS + PATIENCE_MS
    clock.advance(MINUTE_MS)
    assert patient.now_ms() == clock.now_ms()


def test_a_jump_that_is_taken_back_leaves_no_trace(clock: ManualClock, patient: PatientClock) -> None:
    clock.jump(YEAR_MS)
    patient.now_ms()
    clock.advance(PATIENCE_MS // 2)
    patient.now_ms()
    clock.jump(-YEAR_MS)
    assert patient.now_ms() == NOW_MS + PATIENCE_MS // 2
    clock.jump(YEAR_MS)
    patient.now_ms()
    clock.advance(PATIENCE_MS // 2)
    assert patient.now_ms() == NOW_MS + PATIENCE_MS, "the new jump has lasted for half an hour only"


def test_another_jump_ahead_has_to_last_on_its_own(clock: ManualClock, patient: PatientClock) -> None:
    clock.jump(YEAR_MS)
    patient.now_ms()
    clock.advance(PATIENCE_MS - 1)
    clock.jump(YEAR_MS)
    patient.now_ms()
    clock.advance(PATIENCE_MS - 1)
    assert patient.now_ms() == NOW_MS + 2 * (PATIENCE_MS - 1)


@pytest.mark.parametrize("away_ms", [-YEAR_MS, 0, 8 * 60 * 60_000, MAX_ABSENCE_MS])
def test_a_process_that_was_off_for_a_while_believes_the_clock_when_it_starts(
    clock: ManualClock, away_ms: int, capsys: pytest.CaptureFixture[str]
) -> None:
    clock.jump(away_ms)
    patient = PatientClock(clock, last_known_ms=NOW_MS)
    assert patient.now_ms() == clock.now_ms()
    assert capsys.readouterr() == ("", ""), "it is nothing to warn of"
    clock.jump(MAX_JUMP_MS + 1)
    assert patient.now_ms() == clock.now_ms() - MAX_JUMP_MS - 1, "while it runs, less is believed"


@pytest.mark.parametrize("jump_ms", [MAX_ABSENCE_MS + 1, YEAR_MS])
def test_a_clock_that_is_wrong_when_the_process_starts_is_met_with_the_same_patience(
    clock: ManualClock, jump_ms: int
) -> None:
    clock.jump(jump_ms)
    patient = PatientClock(clock, last_known_ms=NOW_MS)
    assert patient.now_ms() == NOW_MS
    clock.advance(PATIENCE_MS)
    assert patient.now_ms() == clock.now_ms()


def test_what_is_written_down_while_the_clock_is_back_does_not_look_old_later(
    clock: ManualClock, patient: PatientClock
) -> None:
    clock.jump(-YEAR_MS)
    clock.advance(MINUTE_MS)
    assert patient.moment().stamp_ms == NOW_MS + MINUTE_MS
    clock.jump(YEAR_MS)
    clock.advance(MINUTE_MS)
    assert patient.moment() == (NOW_MS + 2 * MINUTE_MS, 2 * MINUTE_MS, NOW_MS + 2 * MINUTE_MS), "and all is as it was"


def test_a_clock_that_stays_back_is_followed_in_what_is_written_down_too(
    clock: ManualClock, patient: PatientClock
) -> None:
    clock.jump(-YEAR_MS)
    patient.moment()
    clock.advance(PATIENCE_MS - 1)
    assert patient.moment().stamp_ms == NOW_MS + PATIENCE_MS - 1
    clock.advance(1)
    assert patient.moment().stamp_ms == clock.now_ms()


def test_what_is_written_down_is_never_behind_the_clock(clock: ManualClock, patient: PatientClock) -> None:
    """A jump ahead may be right."""
    clock.jump(YEAR_MS)
    assert patient.moment() == (NOW_MS + YEAR_MS, 0, NOW_MS)
    clock.jump(-YEAR_MS)
    assert patient.moment() == (NOW_MS, 0, NOW_MS), "a jump that was not believed leaves no trace"


def test_a_clock_that_is_behind_when_the_process_starts_is_not_written_down(clock: ManualClock) -> None:
    """A machine without a battery is in 1970 until it has a network."""
    patient = PatientClock(clock, NOW_MS + YEAR_MS)
    clock.advance(MINUTE_MS)
    assert patient.moment() == (NOW_MS + YEAR_MS + MINUTE_MS, MINUTE_MS, NOW_MS + MINUTE_MS)
