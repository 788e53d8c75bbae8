"""Asking brokers for the times of records, some of which do not know the request."""

from collections.abc import Collection
from itertools import pairwise

import pytest

from kaspar.base.clock import ManualClock
from kaspar.base.errors import ErrorCode, Refused
from kaspar.client.admin.session import Admin
from kaspar.client.admin.timestamps import RecordAt
from kaspar.client.core import UnsupportedByPeer
from kaspar.monitor.lag import times
from kaspar.monitor.lag.evaluation import UNKNOWN_TIMES
from kaspar.protocol.messages.list_timestamps import NO_RECORD, NOT_LOOKED_UP
from tests.unit.monitor.lag.offsets import T0, T1

FIRST, SECOND, THIRD = RecordAt(T0, 1), RecordAt(T0, 9), RecordAt(T1, 5)
ADMIN = Admin("localhost:1")


class Brokers:
    """What they respond, and how often they were asked."""

    def __init__(self, response: "dict[RecordAt, int] | Exception") -> None:
        self.response = response
        self.asked = 0

    def __call__(self, admin: Admin, wanted: Collection[RecordAt]) -> dict[RecordAt, int]:
        self.asked += 1
        if isinstance(self.response, Exception):
            raise self.response
        return self.response


def brokers_that(monkeypatch: pytest.MonkeyPatch, response: "dict[RecordAt, int] | Exception") -> Brokers:
    brokers = Brokers(response)
    monkeypatch.setattr(times, "list_timestamps", brokers)
    return brokers


def test_times_ends_and_what_was_not_looked_up_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers_that(monkeypatch, {FIRST: 700, SECOND: NO_RECORD, THIRD: NOT_LOOKED_UP})
    found = times.IndexTimes(ManualClock()).read(ADMIN, [FIRST, SECOND, THIRD])
    assert (found.written_at_ms, found.nothing_left) == ({FIRST: 700}, frozenset({SECOND}))


def test_nobody_is_asked_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = brokers_that(monkeypatch, {})
    assert times.IndexTimes(ManualClock()).read(ADMIN, []) == UNKNOWN_TIMES
    assert brokers.asked == 0


def test_brokers_that_do_not_know_the_request_are_asked_ever_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = brokers_that(monkeypatch, UnsupportedByPeer("closed"))
    clock = ManualClock()
    index = times.IndexTimes(clock)
    asked_at = []
    for second in range(0, 8 * 3600, 10):
        before = brokers.asked
        assert index.read(ADMIN, [FIRST]) == UNKNOWN_TIMES
        if brokers.asked > before:
            asked_at.append(second)
        clock.advance(10_000)
    pauses = [later - earlier for earlier, later in pairwise(asked_at)]
    assert pauses == [60, 120, 240, 480, 960, 1920, *[3600] * (len(pauses) - 6)]
    assert len(pauses) > 8
    brokers.response = {FIRST: 5}
    clock.advance(3_600_000)
    assert index.read(ADMIN, [FIRST]).written_at_ms == {FIRST: 5}


@pytest.mark.parametrize("problem", [OSError("away"), Refused(ErrorCode.LEADER_NOT_AVAILABLE, "moved")])
def test_a_leader_that_is_away_is_asked_again_in_the_next_round(
    monkeypatch: pytest.MonkeyPatch, problem: Exception
) -> None:
    brokers = brokers_that(monkeypatch, problem)
    index = times.IndexTimes(ManualClock())
    for _ in range(3):
        assert index.read(ADMIN, [FIRST]) == UNKNOWN_TIMES
    assert brokers.asked == 3
