"""Arguments and messages of `kaspar up`, `status` and `stop`. Processes: tests/integration/cluster/test_up.py."""

import json
import os
import socket
from pathlib import Path

import pytest

from kaspar.base.processes import ProcessId
from kaspar.cli.main import main
from kaspar.services import extras
from kaspar.supervisor.folder import Folder, Running, RunningMember
from kaspar.supervisor.plan import BrokerPlan, ClusterPlan, ZooKeeperPlan
from kaspar.supervisor.ports import consecutive_free_ports
from kaspar.web.catalogue import SERVICES

THREE = ClusterPlan(
    tuple(BrokerPlan(number, 9_091 + number, 9_403 + number) for number in (1, 2, 3)),
    (ZooKeeperPlan(1, 2181, 2888, 3888),),
)
WITHOUT = ("--only", "")
GONE = ProcessId(os.getpid(), 1)


def _refusal(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    assert main([*map(str, arguments)]) == 1
    written = capsys.readouterr()
    assert written.err.startswith("kaspar: ")
    assert len(written.err.splitlines()) == 1
    return written.err.removeprefix("kaspar: ").strip()


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """The folder of a cluster of three that is stopped."""
    folder = Folder(tmp_path / "c1")
    folder.path.mkdir()
    folder.write_plan(THREE)
    return folder


# -- up ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--brokers", "0"), "a cluster needs at least one broker"),
        (("--port", "70000"), "the port must be between 1 and 65535"),
        (("--zookeepers", "3"), "--zookeepers requires a cluster"),
        (("--registry-port", "70000"), "the port must be between 0 and 65535"),
        (("--without", "registry,rset"), "there is no service 'rset'; services: registry, rest, monitor, console"),
        (("--without", "rest", "--only", "registry"), "--without and --only cannot be combined"),
        (("--without", "rest", "--rest-port", "0"), "--rest-port is given, but the service is disabled"),
        (("--override", "num.partitions"), "is not of the form key=value"),
        (("--override", "num.partitions=x"), "num.partitions"),
        (("--override", "log.dirs=/data"), "--override log.dirs is not possible: 'kaspar up' sets it for each broker"),
    ],
)
def test_mistake_is_refused_and_nothing_is_left(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    port = str(consecutive_free_ports(1)[0])
    assert sentence in _refusal(capsys, "up", "--dir", tmp_path / "c1", "--port", port, *arguments)
    assert [file.name for file in (tmp_path / "c1").iterdir()] == ["lock"]


def test_folder_of_something_else_is_left_as_it_is(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert "was not created by 'kaspar up'" in _refusal(capsys, "up", "--dir", tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


def test_interrupted_first_start_leaves_a_folder_that_can_be_started(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kaspar.supervisor.members.properties_text", interrupt)
    port = consecutive_free_ports(1)[0]
    assert main(["up", "--dir", str(tmp_path / "c1"), "--port", str(port), *WITHOUT]) == 130
    assert capsys.readouterr().err == ""
    plan = Folder(tmp_path / "c1").plan()
    assert plan is not None
    assert [broker.port for broker in plan.brokers] == [port]


def test_used_port_is_refused_before_anything_starts(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        sentence = _refusal(capsys, "up", "--dir", tmp_path / "c1", "--port", str(port))
    assert sentence.startswith(f"broker 1 cannot listen on 127.0.0.1:{port}")
    assert not (tmp_path / "c1" / "broker-1").exists()


@pytest.mark.parametrize("service", SERVICES)
def test_used_port_of_a_service_is_refused_before_anything_starts(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, service: str
) -> None:
    broker, *others = consecutive_free_ports(1 + len(SERVICES))
    ports = dict(zip(SERVICES, others, strict=True))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        ports[service] = listening.getsockname()[1]
        chosen = [word for name, port in ports.items() for word in (f"--{name}-port", str(port))]
        sentence = _refusal(capsys, "up", "--dir", tmp_path / "c1", "--port", str(broker), *chosen)
    assert f"cannot listen on 127.0.0.1:{ports[service]}" in sentence
    assert f"or disable it with --without {service}" in sentence
    assert [file.name for file in (tmp_path / "c1").iterdir()] == ["lock"]


def test_service_whose_packages_are_missing_is_left_out_and_said_unless_it_is_asked_for(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extras, "missing_packages", lambda name: ["fastavro"])
    monkeypatch.setattr("kaspar.supervisor.supervisor.Supervisor.run", lambda supervisor: 0)
    port = str(consecutive_free_ports(1)[0])
    assert main(["up", "--dir", str(tmp_path / "c1"), "--port", port]) == 0
    said = capsys.readouterr().out
    assert said == f"Without {', '.join(SERVICES)}: pip install 'kaspar[{','.join(SERVICES)}]' adds what they need.\n"
    plan = Folder(tmp_path / "c1").plan()
    assert plan is not None
    assert (plan.services, plan.left_out) == ((), ()), "they run as soon as the packages are there"
    sentence = _refusal(capsys, "up", "--dir", tmp_path / "c1", "--registry-port", "0")
    assert "pip install 'kaspar[registry]'" in sentence


def test_cluster_without_java_says_how_to_get_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "no-java"))
    sentence = _refusal(capsys, "up", "--brokers", "3", "--dir", tmp_path / "c1")
    assert "install Java 17 or newer" in sentence
    assert sentence.endswith("A single broker needs neither: omit --brokers")


def test_folder_of_another_size_is_refused(capsys: pytest.CaptureFixture[str], folder: Folder) -> None:
    assert "has the data of 3 brokers" in _refusal(capsys, "up", "--brokers", "2", "--dir", folder.path)


def test_folder_of_something_else_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("Dear")
    assert "is not empty and was not created by 'kaspar up'" in _refusal(capsys, "up", "--dir", tmp_path)


@pytest.mark.parametrize("command", ["up", "status", "stop"])
def test_help_has_examples_and_names_the_default_folder(capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert main([command, "--help"]) == 0
    text = capsys.readouterr().out
    assert f"  kaspar {command} " in text
    assert "examples:" in text
    assert "./kaspar-data" in text


# -- status ------------------------------------------------------------------------------------------------------------


def test_status_of_a_stopped_cluster(capsys: pytest.CaptureFixture[str], folder: Folder) -> None:
    assert main(["status", "--dir", str(folder.path), "--json"]) == 1
    status = json.loads(capsys.readouterr().out)
    assert list(status) == ["ready", "brokers", "zookeepers", "services"]
    assert status["ready"] is False
    assert status["brokers"][1] == {
        "id": 2,
        "port": 9093,
        "pid": None,
        "state": "stopped",
        "controller": False,
        "metrics": "127.0.0.1:9405",
        "log_dir": str(folder.path / "broker-2" / "data"),
    }
    assert status["zookeepers"] == [{"id": 1, "port": 2181, "pid": None, "state": "stopped"}]


def test_status_for_people(capsys: pytest.CaptureFixture[str], folder: Folder) -> None:
    assert main(["status", "--dir", str(folder.path)]) == 1
    head, *table = capsys.readouterr().out.splitlines()
    assert head == f"{folder.path} is stopped: 'kaspar up --dir {folder.path}' starts it"
    assert table[0].split() == ["broker", "port", "process", "state", "metrics", "data"]
    assert table[1].split()[:4] == ["1", "9092", "-", "stopped"]
    assert table[-1].split() == ["1", "2181", "-", "stopped"]


def test_process_of_another_program_is_not_taken_for_a_broker(
    capsys: pytest.CaptureFixture[str], folder: Folder
) -> None:
    """Its id is in use, by a process that has started at another time."""
    members = {number: RunningMember(GONE, was_ready=True) for number in (1, 2, 3)}
    folder.write_running(Running(GONE, members, {1: RunningMember(GONE)}))
    assert main(["status", "--dir", str(folder.path), "--json"]) == 1
    assert {broker["state"] for broker in json.loads(capsys.readouterr().out)["brokers"]} == {"stopped"}


def test_process_that_does_not_respond(capsys: pytest.CaptureFixture[str], folder: Folder) -> None:
    me = ProcessId.of(os.getpid())
    free = consecutive_free_ports(3)
    folder.write_plan(ClusterPlan(tuple(BrokerPlan(n, free[n - 1], free[n - 1]) for n in (1, 2, 3))))
    folder.write_running(Running(me, {1: RunningMember(me, was_ready=True), 2: RunningMember(me)}, {}))
    assert main(["status", "--dir", str(folder.path), "--json"]) == 1
    brokers = json.loads(capsys.readouterr().out)["brokers"]
    assert [broker["state"] for broker in brokers] == ["not ready", "starting", "stopped"]
    assert [broker["pid"] for broker in brokers] == [me.pid, me.pid, None]


def test_status_where_nothing_was_started(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["status", "--dir", str(tmp_path / "new"), "--json"]) == 1
    written = capsys.readouterr()
    assert json.loads(written.out) == {"ready": False, "brokers": [], "zookeepers": [], "services": []}
    assert (
        written.err == f"kaspar: there is no cluster in {tmp_path}/new: 'kaspar up --dir {tmp_path}/new' starts one\n"
    )
    assert not (tmp_path / "new").exists()


# -- stop --------------------------------------------------------------------------------------------------------------


def test_stop_where_nothing_runs(capsys: pytest.CaptureFixture[str], folder: Folder, tmp_path: Path) -> None:
    folder.write_running(Running(GONE, {1: RunningMember(GONE)}, {}))
    for path in (folder.path, tmp_path / "new"):
        assert main(["stop", "--dir", str(path)]) == 0
        assert capsys.readouterr().out == f"Nothing is running in {path}.\n"
