"""What the demo refuses, and what it says when something is missing."""

import subprocess
import sys

import pytest

from kaspar.demo import run


def test_demo_without_a_record_a_second_or_without_time_is_refused_before_anything_starts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "listen_to_signals", lambda stop: None)
    assert run.run_demo(seconds=1, rate=0) == 1
    assert capsys.readouterr() == ("", "kaspar: --rate must be at least 1 record per second, not 0\n")
    assert run.run_demo(seconds=-1, rate=1) == 1
    assert capsys.readouterr() == ("", "kaspar: --seconds must be positive, not -1\n")


def test_demo_without_its_client_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "listen_to_signals", lambda stop: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert run.run_demo(seconds=1, rate=1) == 1
    expected = "kaspar: the demo needs confluent-kafka as its Kafka client: pip install 'kaspar[tools]'\n"
    assert capsys.readouterr() == ("", expected)


def test_demo_can_be_imported_without_its_client() -> None:
    program = "import sys; sys.modules['confluent_kafka'] = None; import kaspar.cli.main, kaspar.demo.run"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@pytest.mark.parametrize("missing", ["pyspark", "lmdb", "sortedcontainers"])
def test_what_the_programs_need_is_named_when_it_is_missing(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == missing else object())
    monkeypatch.setattr(run, "find_java", lambda: None)
    assert run.obstacle_to_spark() == f"{missing} is not installed: pip install 'kaspar[streams]'"


def test_programs_with_all_that_they_need_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    monkeypatch.setattr(run, "find_java", lambda: None)
    assert run.obstacle_to_spark() is None
