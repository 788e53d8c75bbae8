"""`kaspar zookeeper`: real processes, alone and as an ensemble, and how they end."""

import contextlib
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kaspar.base.processes import ProcessId, descendants
from kaspar.spark.running.java import JavaMissing, find_java
from kaspar.zookeeper import Member, State, state_of, write_config
from tests.integration.commands import PROGRAMS, run
from tests.peers.downloads import ToolMissingError
from tests.peers.missing import unless_missing
from tests.peers.wire import free_port

SECONDS = 60.0


@pytest.fixture(autouse=True)
def _java() -> None:
    def found() -> None:
        try:
            find_java()
        except JavaMissing as missing:
            raise ToolMissingError(str(missing)) from missing

    unless_missing(found)


@contextlib.contextmanager
def command(*arguments: str | Path) -> "Iterator[subprocess.Popen[str]]":
    line = [str(PROGRAMS / "kaspar"), "zookeeper", *map(str, arguments), "--heap", "96m"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def said(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def wait_until_gone(processes: list[ProcessId]) -> None:
    until = time.monotonic() + SECONDS
    while any(process.is_running() for process in processes):
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_single_server_serves_until_it_is_told_to_end(tmp_path: Path, number: signal.Signals) -> None:
    port = free_port()
    with command("--dir", tmp_path / "zk", "--port", str(port)) as process:
        assert said(process).startswith(f"ZooKeeper serves on 127.0.0.1:{port}. Data: {tmp_path}/zk/data.")
        assert state_of("127.0.0.1", port) is State.SERVING
        java = descendants(ProcessId.of(process.pid))
        process.send_signal(number)
        output, error = process.communicate(timeout=SECONDS)
        assert (process.returncode, output, error) == (0, "", "")
        wait_until_gone(java)
    log = (tmp_path / "zk/data/zookeeper.log").read_text()
    assert " ERROR " not in log


def test_server_ends_with_a_command_that_is_killed(tmp_path: Path) -> None:
    with command("--dir", tmp_path, "--port", str(free_port())) as process:
        said(process)
        java = descendants(ProcessId.of(process.pid))
        assert len(java) == 1
        process.kill()
        wait_until_gone(java)


def test_port_in_use_is_a_sentence(tmp_path: Path) -> None:
    port = str(free_port())
    with command("--dir", tmp_path / "one", "--port", port) as process:
        said(process)
        done = run("kaspar", "zookeeper", "--dir", tmp_path / "two", "--port", port, "--heap", "96m")
    sentence = f"kaspar: ZooKeeper cannot listen on 127.0.0.1:{port}: the port is in use\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", sentence)


def test_data_of_a_running_server_is_refused(tmp_path: Path) -> None:
    """ZooKeeper itself would start, and both servers would write into the same log."""
    with command("--dir", tmp_path, "--port", str(free_port())) as process:
        said(process)
        done = run("kaspar", "zookeeper", "--dir", tmp_path, "--port", str(free_port()), "--heap", "96m")
        sentence = f"kaspar: a ZooKeeper server is already running on the data in {tmp_path}/data\n"
        assert (done.returncode, done.stdout, done.stderr) == (1, "", sentence)
        process.terminate()
        assert process.wait(SECONDS) == 0
    with command("--dir", tmp_path, "--port", str(free_port())) as process:
        assert said(process).startswith("ZooKeeper serves on")


def test_ensemble_serves_when_a_majority_runs(tmp_path: Path) -> None:
    members = [Member(number, peer_port=free_port(), election_port=free_port()) for number in (1, 2, 3)]
    ports = [free_port() for _ in members]
    files = [
        write_config(tmp_path / str(member.id), client_port=port, members=members).file
        for member, port in zip(members, ports, strict=True)
    ]
    with contextlib.ExitStack() as stack:
        waits = "ZooKeeper is waiting for a majority of its ensemble.\n"
        first = stack.enter_context(command(files[0], "--id", "1"))
        assert said(first) == waits
        second = stack.enter_context(command(files[1], "--id", "2"))
        for process, port in ((second, ports[1]), (first, ports[0])):
            line = said(process)
            assert (said(process) if line == waits else line).startswith(f"ZooKeeper serves on 127.0.0.1:{port}.")
        for process in (first, second):
            process.terminate()
            assert process.wait(SECONDS) == 0
