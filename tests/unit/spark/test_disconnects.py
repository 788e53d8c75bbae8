"""Spark ends its Python processes by hanging up: that is not logged, and every other failure is."""

import os
import select
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from kaspar.spark import disconnects
from kaspar.spark.running.sessions import WORKER_PYTHON, WRAPPED_PYTHON
from kaspar.spark.running.worker_daemon import exits_on_disconnect


@pytest.mark.parametrize("failure", [BrokenPipeError(), ConnectionResetError()])
def test_worker_exits_silently_when_spark_disconnects(failure: Exception) -> None:
    def worker(connection: socket.socket, authenticated: bool) -> int:
        raise failure

    with socket.socket() as connection:
        assert exits_on_disconnect(worker)(connection, True) != 0, "which ends the process"


def test_any_other_failure_of_a_worker_is_logged() -> None:
    def worker(connection: socket.socket, authenticated: bool) -> int:
        raise OSError("no space left")

    with socket.socket() as connection, pytest.raises(OSError, match="no space left"):
        exits_on_disconnect(worker)(connection, True)


def test_worker_that_is_done_is_used_again() -> None:
    with socket.socket() as connection:
        assert exits_on_disconnect(lambda *_: 0)(connection, True) == 0


@pytest.mark.parametrize(
    ("failure", "is_logged"), [(BrokenPipeError(32, "Broken pipe"), False), (ValueError("a fault of ours"), True)]
)
def test_only_the_process_of_a_source_ends_quietly(
    failure: Exception, is_logged: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    disconnects.exit_quietly_on_disconnect()
    assert sys.excepthook is sys.__excepthook__, "this process is none"
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", ModuleSpec(disconnects._RUNNER, None))
    disconnects.exit_quietly_on_disconnect()
    sys.excepthook(type(failure), failure, None)
    assert (str(failure) in capsys.readouterr().err) is is_logged


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


WORKER_THAT_ENDS_LATE = """
def main(infile, outfile):
    infile.read()  # until Spark disconnects
    outfile.write(b"the last rows")
"""


@pytest.fixture
def short_path() -> Iterator[Path]:
    """The path of a unix socket may have 107 bytes, which pytest's own folders nearly take."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.mark.parametrize("module", ["pyspark.daemon", "kaspar.spark.running.worker_daemon"])
def test_no_daemon_reports_rows_that_nobody_waits_for(module: str, short_path: Path) -> None:
    (short_path / "pyspark_late_worker.py").write_text(WORKER_THAT_ENDS_LATE)
    daemon = subprocess.Popen(
        [WORKER_PYTHON, "-m", module, "pyspark_late_worker"],
        env={
            **os.environ,
            "PYTHONPATH": str(short_path),
            WRAPPED_PYTHON: sys.executable,
            "PYTHON_UNIX_DOMAIN_ENABLED": "true",
            "PYTHON_WORKER_FACTORY_SOCK_DIR": str(short_path),
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert daemon.stdin is not None
    assert daemon.stdout is not None
    assert daemon.stderr is not None
    with daemon:
        address = daemon.stdout.read(int.from_bytes(daemon.stdout.read(4), "big"))
        with socket.socket(socket.AF_UNIX) as spark:
            spark.connect(address)
            worker = os.pidfd_open(int.from_bytes(spark.recv(4, socket.MSG_WAITALL), "big"))
        select.select([worker], [], [], 30)  # until it has exited
        os.close(worker)
        daemon.stdin.close()
        assert daemon.stderr.read().decode() == ""
