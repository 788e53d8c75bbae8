"""`kaspar` when no broker responds, when it is interrupted, and when nobody reads what it prints."""

import json
import os
import pty
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kaspar.cli.failures import FAILED, INTERRUPTED, NO_BROKER, USAGE
from kaspar.cli.main import main
from tests.integration.cli.conftest import Kaspar
from tests.peers.kaspar import KasparProcess
from tests.peers.observed import wait_until
from tests.peers.wire import free_port

KASPAR = Path(sys.executable).with_name("kaspar")


@pytest.mark.parametrize(
    "command",
    [
        ["topic", "list"],
        ["topic", "create", "a"],
        ["topic", "describe", "a"],
        ["group", "list"],
        ["group", "describe", "a"],
        ["config", "list", "broker/1"],
        ["txn", "describe", "a"],
        ["acl", "list"],
        ["user", "list"],
        ["quota", "list"],
        ["cluster", "health"],
        ["broker", "list"],
        ["log", "sizes"],
    ],
    ids=" ".join,
)
def test_no_broker_says_what_to_try(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    servers = f"127.0.0.1:{free_port()}"
    assert main([*command, "-b", servers, "-X", "default.api.timeout.ms=200"]) == NO_BROKER
    assert capsys.readouterr() == (
        "",
        f"kaspar: no broker responds at {servers}: is it running? 'kaspar up' starts one\n",
    )


def test_file_that_does_not_exist_is_not_dumped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", "dump", str(tmp_path / "0.log")]) == USAGE
    assert "does not exist" in capsys.readouterr().err


def test_something_that_is_not_a_broker(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        assert main(["topic", "list", "-b", f"127.0.0.1:{port}", "-X", "request.timeout.ms=200"]) == NO_BROKER
    assert "in time: is this a broker's port" in capsys.readouterr().err


def test_ctrl_c_ends_a_command_that_waits() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        command = [str(KASPAR), "topic", "list", "-b", f"127.0.0.1:{port}"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            silent.settimeout(30)
            connection, _ = silent.accept()
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=30)
            connection.close()
    assert (process.returncode, output, errors) == (INTERRUPTED, "", "")


def test_ctrl_c_while_the_command_is_imported_is_quiet() -> None:
    program = """
import os, signal, sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "kaspar.cli.command":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
from kaspar.cli.entry import main
main()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_closed_pipe_is_no_traceback(kaspar: Kaspar, broker: KasparProcess) -> None:
    kaspar.run("topic", "create", kaspar.name("t"))
    reader, writer = os.pipe()
    os.close(reader)
    command = [str(KASPAR), "topic", "list", "-b", broker.bootstrap]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


def test_closed_output_is_no_traceback(kaspar: Kaspar, broker: KasparProcess) -> None:
    kaspar.run("topic", "create", kaspar.name("t"))
    command = [sys.executable, "-m", "kaspar.cli.main", "topic", "list", "-b", broker.bootstrap]
    closed = subprocess.run(
        ["sh", "-c", '"$@" >&-', "sh", *command], stderr=subprocess.PIPE, text=True, timeout=60, check=False
    )
    assert (closed.returncode, closed.stderr) == (0, "")


def test_output_that_the_encoding_lacks_is_escaped(kaspar: Kaspar, broker: KasparProcess) -> None:
    topic, group = kaspar.name("t"), kaspar.name("grüße")
    kaspar.run("topic", "create", topic)
    kaspar.run("group", "seek", group, "--to", "end", "--topic", topic)
    command = [sys.executable, "-m", "kaspar.cli.main", "group", "list", "--json", "-b", broker.bootstrap]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, env=environment, capture_output=True, timeout=60, check=True)
    assert group in [each["name"] for each in json.loads(done.stdout)]


@pytest.mark.parametrize(
    "command",
    [
        ["topic", "create", "\udcff"],
        ["group", "describe", "\udcff"],
        ["produce", "\udcff", "--value", "x"],
        ["consume", "t", "--group", "\udcff"],
    ],
    ids=lambda command: command[0],
)
def test_name_that_is_not_utf8_is_refused(command: list[str], kaspar: Kaspar) -> None:
    kaspar.run("topic", "create", "t", "--if-not-exists")
    assert kaspar.refusal(USAGE, *command) == "'\\udcff' is not UTF-8 text\n"


@pytest.mark.parametrize("servers", ["", " ", "a..b:9092"])
def test_servers_that_can_be_none(servers: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topic", "list", "-b", servers]) == USAGE
    assert capsys.readouterr().err.startswith("kaspar: ")


def test_terminal_is_asked_before_something_is_deleted(kaspar: Kaspar, broker: KasparProcess) -> None:
    topic = kaspar.name("t")
    kaspar.run("topic", "create", topic)

    def delete(answer: bytes) -> tuple[int, str]:
        """In a terminal."""
        control, terminal = pty.openpty()
        command = [str(KASPAR), "topic", "delete", topic, "-b", broker.bootstrap]
        with subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal) as process:
            os.close(terminal)
            seen = _Screen(control)
            wait_until(lambda: "[y/N]" in seen.text, "the question is asked")
            os.write(control, answer)
            code = process.wait(30)
        seen.end()
        return code, seen.text

    code, text = delete(b"n\n")
    assert code == FAILED
    assert f"Delete {topic} with all records?" in text
    assert kaspar.run("topic", "describe", topic).code == 0
    code, text = delete(b"y\n")
    assert code == 0
    assert f"topic {topic}: deleted" in text


class _Screen:
    """What a terminal shows, read in a thread until the program has ended."""

    def __init__(self, control: int) -> None:
        self.text = ""
        self._control = control
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        try:
            while data := os.read(self._control, 4096):
                self.text += data.decode()
        except OSError:  # the program has closed its side
            pass

    def end(self) -> None:
        self._thread.join(30)
        os.close(self._control)
