"""Commands as processes of their own. The word ADDRESS in their arguments is replaced by the broker's address."""

import signal
import socket
import subprocess
import sys
from pathlib import Path

from tests.compat.commands.catalog import entry_points

SECONDS = 30


def start(name: str, *words: str | Path, address: str = "") -> subprocess.Popen[str]:
    """As its script in `.venv/bin` does it."""
    module, function = entry_points()[name].split(":")
    program = f"import sys; from {module} import {function}; sys.exit({function}())"
    arguments = [address if word == "ADDRESS" else str(word) for word in words]
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def interrupt(name: str, *words: str) -> tuple[int, str]:
    """The exit code and standard error of a command that Ctrl-C ends while it waits for a broker that accepts
    connections and does not respond."""
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        start(name, *words, address=f"127.0.0.1:{silent.getsockname()[1]}") as process,
    ):
        silent.settimeout(SECONDS)
        connection, _ = silent.accept()
        with connection:
            assert connection.recv(4)  # the command has sent its first request
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=SECONDS)
    return process.returncode, errors


def read_by_nobody(name: str, *words: str, address: str) -> tuple[int, str]:
    """The exit code and standard error of a command whose output has no reader any more, as behind `| head -1`."""
    with start(name, *words, address=address) as process:
        assert process.stdout is not None
        process.stdout.close()
        process.stdout = None
        _, errors = process.communicate(timeout=SECONDS)
    return process.returncode, errors
