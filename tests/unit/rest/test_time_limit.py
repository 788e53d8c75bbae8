"""A limit for calls that have none."""

import threading

import pytest

from kaspar.rest.consuming.time_limit import TimeLimit
from kaspar.rest.errors import RestError


def test_a_call_in_time_returns_or_raises_as_without_a_limit() -> None:
    limit = TimeLimit(10)
    assert limit.run("x", lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        limit.run("x", lambda: 1 // 0)
    assert limit.run("x", lambda: 8) == 8


def test_a_call_that_takes_too_long_is_reported_and_the_next_waits_for_it() -> None:
    limit = TimeLimit(0.05)
    ends = threading.Event()
    with pytest.raises(RestError, match="Timeout of 50ms expired before x") as refused:
        limit.run("x", ends.wait)
    assert refused.value.kind.code == 50003
    called: list[int] = []
    with pytest.raises(RestError, match="Timeout of 50ms expired before x"):
        limit.run("x", lambda: called.append(1))
    assert called == []
    ends.set()
    limit.wait()
    assert limit.run("x", lambda: 9) == 9
