"""Spark ends its Python processes by hanging up: that is told to nobody, and everything else is."""

import os
import socket
import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from kaspar.spark import hang_ups
from kaspar.spark.sessions import WORKER_PYTHON, WRAPPED_PYTHON
from kaspar.spark.worker_daemon import ends_when_spark_hangs_up


@pytest.mark.parametrize("failure", [BrokenPipeError(), ConnectionResetError()])
def test_worker_ends_when_spark_hangs_up(failure: Exception) -> None:
    def worker(connection: socket.socket, authenticated: bool) -> int:
        raise failure

    with socket.socket() as connection:
        assert ends_when_spark_hangs_up(worker)(connection, True) != 0, "which ends the process"


def test_worker_that_fails_otherwise_is_told() -> None:
    def worker(connection: socket.socket, authenticated: bool) -> int:
        raise OSError("no space left")

    with socket.socket() as connection, pytest.raises(OSError, match="no space left"):
        ends_when_spark_hangs_up(worker)(connection, True)


def test_worker_that_is_done_is_used_again() -> None:
    with socket.socket() as connection:
        assert ends_when_spark_hangs_up(lambda *_: 0)(connection, True) == 0


@pytest.mark.parametrize(
    ("failure", "is_told"), [(BrokenPipeError(32, "Broken pipe"), False), (ValueError("a fault of ours"), True)]
)
def test_only_the_process_of_a_source_ends_quietly(
    failure: Exception, is_told: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    hang_ups.end_quietly_when_spark_hangs_up()
    assert sys.excepthook is sys.__excepthook__, "this process is none"
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", ModuleSpec(hang_ups._RUNNER, None))
    hang_ups.end_quietly_when_spark_hangs_up()
    sys.excepthook(type(failure), failure, None)
    assert (str(failure) in capsys.readouterr().err) is is_told


def test_workers_import_the_pyspark_that_is_installed(tmp_path: Path) -> None:
    lib = "/spark/python/lib"
    theirs = [f"{lib}/pyspark.zip", f"{lib}/py4j-0.10.9.9-src.zip", "/spark/jars/spark-core_2.13-4.3.0.jar"]
    ours = [str(tmp_path / "with a blank"), str(tmp_path / "*")]
    done = subprocess.run(
        [WORKER_PYTHON, "-c", "import sys; print(sys.executable, *sys.path, *sys.argv[1:], sep='\\n')", "a b", "*"],
        env={**os.environ, "PYTHONPATH": ":".join([*theirs, *ours]), WRAPPED_PYTHON: sys.executable},
        capture_output=True,
        text=True,
        check=True,
    )
    said = done.stdout.splitlines()
    assert said[0] == sys.executable
    assert not set(theirs) & set(said)
    assert [line for line in said if line in ours] == ours
    assert said[-2:] == ["a b", "*"]
