"""Commands about settings and users as processes: exit codes, a reader that has ended, and Ctrl-C."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.peers.kaspar import KasparProcess

SECONDS = 30
COMMANDS = {
    "kaspar.tools.configs.command": ("--describe", "--topic", "orders"),
    "kaspar.tools.acls.command": ("--list",),
    "kaspar.tools.client_metrics": ("--list",),
    "kaspar.tools.delegation_tokens": ("--describe", "--command-config", os.devnull),
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KasparProcess]:
    with KasparProcess(tmp_path_factory.mktemp("broker")) as running:
        yield running


def start(module: str, *words: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", module, *map(str, words)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("module", COMMANDS)
def test_ctrl_c(module: str) -> None:
    """While the command waits for a broker that accepts connections and does not respond."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with start(module, "--bootstrap-server", address, *COMMANDS[module]) as process:
            silent.settimeout(SECONDS)
            connection, _ = silent.accept()
            with connection:
                assert connection.recv(4)  # the command has sent its first request
                process.send_signal(signal.SIGINT)
                _, errors = process.communicate(timeout=SECONDS)
    assert (process.returncode, errors) == (130, "")


def test_the_reader_has_ended(broker: KasparProcess) -> None:
    words = ("--describe", "--broker", "1", "--all")
    with start("kaspar.tools.configs.command", "--bootstrap-server", broker.bootstrap, *words) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(SECONDS) == 1
        assert process.stderr is not None
        assert process.stderr.read() == ""


@pytest.mark.parametrize(
    ("module", "code"),
    [
        ("kaspar.tools.configs.command", 0),
        ("kaspar.tools.acls.command", 1),  # the broker has no authorizer
        ("kaspar.tools.client_metrics", 0),
        ("kaspar.tools.delegation_tokens", 1),  # nobody has logged in
    ],
)
def test_exit_codes(module: str, code: int, broker: KasparProcess) -> None:
    with start(module, "--bootstrap-server", broker.bootstrap, *COMMANDS[module]) as process:
        output, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == code
    assert "Traceback" not in output + errors
