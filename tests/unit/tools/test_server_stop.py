"""Which processes kafka-server-stop takes for brokers, which node each is, and what it does about them."""

import os
import signal
from pathlib import Path

import pytest

from kaspar.tools import server_stop
from kaspar.tools.server_stop import broker_arguments, node_id_of


@pytest.mark.parametrize(
    "command",
    [
        "/venv/bin/python /venv/bin/kafka-server-start server.properties",
        "/usr/bin/python3.11 -u -X dev /venv/bin/kafka-server-start server.properties",
        "/venv/bin/kafka-server-start server.properties",
        "python -m kaspar.tools.server_start server.properties",
        "/venv/bin/python3 /venv/bin/kaspar broker server.properties",
        "python -m kaspar.cli.main broker server.properties",
    ],
)
def test_a_broker_is_found_by_its_command(command: str) -> None:
    assert broker_arguments(command.split()) == ["server.properties"]


@pytest.mark.parametrize(
    "command",
    [
        "vim /venv/bin/kafka-server-start",
        "timeout 60 /venv/bin/kafka-server-start server.properties",
        "sh -c kafka-server-start",
        "/venv/bin/python /venv/bin/kaspar demo",
        "/venv/bin/python",
        "/venv/bin/python -X",
        "/venv/bin/python /home/me/kaspar",
        "java -cp libs kafka.Kafka server.properties",
        "",
    ],
)
def test_nothing_else_is_taken_for_a_broker(command: str) -> None:
    assert broker_arguments(command.split()) is None


def test_the_node_id_is_that_of_the_file_where_the_broker_was_started_and_of_its_overrides(tmp_path: Path) -> None:
    (tmp_path / "settings").write_text("broker.id=3\n")
    assert node_id_of(["settings"], tmp_path) == 3
    assert node_id_of(["-daemon", "settings", "--override", "num.partitions=5"], tmp_path) == 3
    assert node_id_of(["settings", "--override", "node.id=4", "--override", "broker.id=4"], tmp_path) == 4
    assert node_id_of(["--override=node.id=5"], tmp_path) == 5
    assert node_id_of(["not-there-any-more"], tmp_path) is None


class Signals:
    """Fake brokers, and those that were sent a signal."""

    def __init__(self, brokers: dict[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
        self.signalled: list[int] = []
        self.failing: dict[int, Exception] = {}
        found = [(pid, ["--override", f"node.id={node}"]) for pid, node in brokers.items()]
        monkeypatch.setattr(server_stop, "running_brokers", lambda: iter(found))
        monkeypatch.setattr(os, "kill", self.kill)

    def kill(self, pid: int, number: int) -> None:
        assert number == signal.SIGTERM
        if pid in self.failing:
            raise self.failing[pid]
        self.signalled.append(pid)


def test_all_brokers_or_one_by_node_id_are_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    signals = Signals({101: 1, 102: 2}, monkeypatch)
    assert server_stop.main(["--node-id", "2"]) == 0
    assert signals.signalled == [102]
    assert server_stop.main([]) == 0
    assert signals.signalled == [102, 101, 102]


def test_no_broker_to_stop_is_reported(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    signals = Signals({101: 1}, monkeypatch)
    assert server_stop.main(["--node-id", "7"]) == 1
    assert capsys.readouterr().err == "No broker with node.id 7 to stop\n"
    signals.failing[101] = ProcessLookupError()
    assert server_stop.main([]) == 1
    assert capsys.readouterr().err == "No broker to stop\n"


def test_anothers_broker_is_named_and_the_others_are_stopped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    signals = Signals({101: 1, 102: 2}, monkeypatch)
    signals.failing[101] = PermissionError()
    assert server_stop.main([]) == 1
    assert signals.signalled == [102]
    assert "process id 101" in capsys.readouterr().err
