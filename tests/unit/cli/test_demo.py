"""What the demo refuses, and what it makes of the counts that it reads back."""

import json

import pytest

from kaspar.base.errors import KasparError
from kaspar.cli import demo
from kaspar.cli.demo_spark import Counts


def _count(start: str, page: str, count: int) -> bytes:
    return json.dumps({"from": f"2026-01-01T{start}.000Z", "page": page, "count": count}).encode()


def test_demo_without_a_record_a_second_or_without_time_is_refused_before_anything_starts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "listen_to_signals", lambda stop: None)
    assert demo.run_demo(seconds=1, rate=0) == 1
    assert capsys.readouterr() == ("", "kaspar: the demo needs at least one record a second, not 0\n")
    assert demo.run_demo(seconds=-1, rate=1) == 1
    assert capsys.readouterr() == ("", "kaspar: the demo needs some time to show anything, not -1 seconds\n")


def test_newest_window_is_shown_whatever_the_order_of_arrival() -> None:
    counts = Counts()
    assert counts.newest() == ("", {})
    assert [counts.take(_count("10:00:05", "/", 3)), counts.take(_count("10:00:00", "/", 2))] == [3, 2]
    counts.take(_count("10:00:05", "/docs", 1))
    assert counts.newest() == ("10:00:05", {"/": 3, "/docs": 1})


def test_page_that_is_counted_twice_ends_the_demo() -> None:
    counts = Counts()
    counts.take(_count("10:00:00", "/", 2))
    with pytest.raises(KasparError, match="/ was counted twice in the window from 2026-01-01T10:00:00"):
        counts.take(_count("10:00:00", "/", 2))
