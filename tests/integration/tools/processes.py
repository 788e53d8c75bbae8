"""Commands as processes of their own."""

import signal
import socket
import subprocess
import sys
from pathlib import Path

SECONDS = 30


def start(module: str, *words: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", module, *map(str, words)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def interrupt(module: str, *words: str) -> tuple[int, str]:
    """The exit code and standard error of a command that Ctrl-C ends while it waits for a broker that accepts
    connections and does not respond. The broker's address replaces the word ADDRESS."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with start(module, *(address if word == "ADDRESS" else word for word in words)) as process:
            silent.settimeout(SECONDS)
            connection, _ = silent.accept()
            with connection:
                assert connection.recv(4)  # the command has sent its first request
                process.send_signal(signal.SIGINT)
                _, errors = process.communicate(timeout=SECONDS)
    return process.returncode, errors


def read_by_nobody(module: str, *words: str) -> tuple[int, str]:
    """The exit code and standard error of a command whose output has no reader any more, as behind `| head -1`."""
    with start(module, *words) as process:
        assert process.stdout is not None
        process.stdout.close()
        process.stdout = None
        _, errors = process.communicate(timeout=SECONDS)
    return process.returncode, errors
