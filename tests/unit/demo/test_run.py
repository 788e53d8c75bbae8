"""What the demo refuses, and what it makes of the counts that it reads back."""

import json
import subprocess
import sys

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
    assert capsys.readouterr() == ("", "kaspar: --rate must be at least 1 record a second, not 0\n")
    assert demo.run_demo(seconds=-1, rate=1) == 1
    assert capsys.readouterr() == ("", "kaspar: --seconds must be positive, not -1\n")


def test_demo_without_its_client_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "listen_to_signals", lambda stop: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert demo.run_demo(seconds=1, rate=1) == 1
    expected = "kaspar: the demo needs confluent-kafka as its Kafka client: pip install 'kaspar[tools]'\n"
    assert capsys.readouterr() == ("", expected)


def test_demo_can_be_imported_without_its_client() -> None:
    program = "import sys; sys.modules['confluent_kafka'] = None; import kaspar.cli.demo, kaspar.cli.main"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_newest_window_is_shown_whatever_the_order_of_arrival() -> None:
    counts = Counts()
    assert counts.newest() == ("", {})
    assert [counts.apply(_count("10:00:05", "/", 3)), counts.apply(_count("10:00:00", "/", 2))] == [3, 2]
    counts.apply(_count("10:00:05", "/docs", 1))
    assert counts.newest() == ("10:00:05", {"/": 3, "/docs": 1})


def test_page_that_is_counted_twice_ends_the_demo() -> None:
    counts = Counts()
    counts.apply(_count("10:00:00", "/", 2))
    with pytest.raises(KasparError, match="/ was counted twice in the window from 2026-01-01T10:00:00"):
        counts.apply(_count("10:00:00", "/", 2))
