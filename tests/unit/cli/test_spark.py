"""`kaspar spark`: its arguments and sentences. The processes are in tests/spark."""

import os
from pathlib import Path

import pytest

from kaspar.base.processes import ProcessId
from kaspar.cli import main as cli
from kaspar.cli.failures import USAGE
from kaspar.spark.running import standalone
from kaspar.spark.running.java import Java
from kaspar.spark.running.standalone import Cluster, ClusterPlan


def _refusal(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    assert cli.main(["spark", *map(str, arguments)]) == 1
    error = capsys.readouterr().err
    assert error.startswith("kaspar: ")
    assert len(error.splitlines()) == 1
    return error


def test_stop_and_status_without_a_cluster_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"no cluster is running in {tmp_path}" in _refusal(capsys, "stop", "--dir", tmp_path)
    assert "start one with 'kaspar spark start'" in _refusal(capsys, "status", "--dir", tmp_path)


def test_cluster_that_has_already_ended_is_reported_and_forgotten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = Cluster("spark://127.0.0.1:1", "http://127.0.0.1:2", 1, (ProcessId(1, -5),))
    standalone._write(tmp_path, gone)
    assert "none of its processes is running" in _refusal(capsys, "status", "--dir", tmp_path)
    assert cli.main(["spark", "stop", "--dir", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "The cluster had already ended.\n"
    assert "no cluster is running" in _refusal(capsys, "stop", "--dir", tmp_path)


def test_second_start_names_the_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standalone, "find_java", lambda: Java(tmp_path, 17))
    running = Cluster("spark://127.0.0.1:7077", "http://127.0.0.1:2", 1, (ProcessId.of(os.getpid()),))
    standalone._write(tmp_path, running)
    error = _refusal(capsys, "start", "--dir", tmp_path)
    assert "is already running in" in error
    assert "spark://127.0.0.1:7077" in error
    assert "kaspar spark stop" in error


def test_foreign_state_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "cluster.json").write_text("{}")
    assert "cluster.json was not written by 'kaspar spark start'" in _refusal(capsys, "stop", "--dir", tmp_path)


def test_folder_that_cannot_be_used_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert "cannot be used" in _refusal(capsys, "stop", "--dir", tmp_path / "file")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--workers", "0"), "at least one worker, not 0"),
        (("--cores", "0"), "at least one core, not 0"),
        (("--memory", "much"), "a size such as 512m or 2g, not 'much'"),
        (("--memory", "2"), "a size such as 512m or 2g"),
        (("--host", "0.0.0.0"), "others connect to the master's host"),
        (("--port", "0"), "between 1 and 65535, not 0"),
        (("--port", "70000"), "between 1 and 65535, not 70000"),
    ],
)
def test_wrong_size_or_place_is_refused(
    arguments: tuple[str, str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sentence in _refusal(capsys, "start", *arguments, "--dir", tmp_path)


def test_missing_java_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert "install Java 17 or newer" in _refusal(capsys, "start", "--dir", tmp_path)


def test_missing_pyspark_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "pip install 'kaspar[spark]'" in _refusal(capsys, "status", "--dir", tmp_path)


def test_bootstrap_server_without_a_port_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["spark", "transactions", "--bootstrap-server", "localhost"]) == USAGE
    assert "localhost is not a list of host:port" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--release"], "--all, --accept-loss and --release require --end"),
        (["--release", "--end", "--all"], "--release requires --query ID"),
    ],
)
def test_a_name_is_released_only_where_it_is_given(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sentence in _refusal(capsys, "transactions", "--bootstrap-server", "localhost:1", *arguments)


def test_workers_share_the_cores_of_the_machine(tmp_path: Path) -> None:
    assert ClusterPlan(tmp_path, workers=10_000).cores_of_each == 1
    assert ClusterPlan(tmp_path, workers=1, cores=3).cores_of_each == 3
