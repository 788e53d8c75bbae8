"""Commands about topics and logs as processes: exit codes, a reader that has ended, and Ctrl-C."""

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compat.commands.catalog import entry_points
from tests.peers.kaspar import KasparProcess

SECONDS = 30
OFFSETS = '{"partitions": [{"topic": "orders", "partition": 0, "offset": 0}]}'
COMMANDS = {
    "kafka-topics": ("--list",),
    "kafka-get-offsets": (),
    "kafka-delete-records": ("--offset-json-file", "offsets.json"),
    "kafka-log-dirs": ("--describe",),
    "kafka-broker-api-versions": (),
}
every_command = pytest.mark.parametrize("name", COMMANDS)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KasparProcess]:
    with KasparProcess(tmp_path_factory.mktemp("broker")) as running:
        yield running


def start(folder: Path, address: str, name: str, *words: str) -> subprocess.Popen[str]:
    """As its script in `.venv/bin` does it."""
    (folder / "offsets.json").write_text(OFFSETS)
    module, function = entry_points()[name].split(":")
    program = f"import sys; from {module} import {function}; sys.exit({function}())"
    return subprocess.Popen(
        [sys.executable, "-c", program, "--bootstrap-server", address, *COMMANDS[name], *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
    )


@every_command
def test_ctrl_c(name: str, tmp_path: Path) -> None:
    """While the command waits for a broker that accepts connections and does not respond."""
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        start(tmp_path, f"127.0.0.1:{silent.getsockname()[1]}", name) as process,
    ):
        silent.settimeout(SECONDS)
        connection, _ = silent.accept()
        with connection:
            assert connection.recv(4)  # the command has sent its first request
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=SECONDS)
    assert (process.returncode, errors) == (130, "")


@every_command
def test_the_reader_has_ended(name: str, broker: KasparProcess, tmp_path: Path) -> None:
    with start(tmp_path, broker.bootstrap, name) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.wait(SECONDS) in (0, 1)  # 0 if it had nothing to print
        assert "Traceback" not in process.stderr.read()


def test_exit_codes(broker: KasparProcess, tmp_path: Path) -> None:
    def code(name: str, *words: str) -> int:
        with start(tmp_path, broker.bootstrap, name, *words) as process:
            process.communicate(timeout=SECONDS)
            return process.returncode

    assert code("kafka-topics") == 0
    assert code("kafka-topics", "--create") == 1
    assert code("kafka-log-dirs", "--broker-list", "9") == 1
    assert code("kafka-get-offsets", "--topic", "no-such-topic") == 1
