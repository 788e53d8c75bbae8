"""Runs the commands as people do."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

PROGRAMS = Path(sys.executable).parent
COMMAND_SECONDS = 60.0


def run(
    program: str, *arguments: str | Path, timeout: float = COMMAND_SECONDS, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """One of our commands, to its end."""
    return subprocess.run(
        [PROGRAMS / program, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        env={**os.environ, **(environment or {})},
    )


def refusal(*arguments: str | Path) -> str:
    """The sentence with which kafka-server-start refuses to start."""
    done = run("kafka-server-start", *arguments)
    assert done.returncode == 1, f"exit code {done.returncode}: {done.stderr}"
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("kaspar: ")]
    assert len(lines) == 1, done.stderr
    return lines[0].removeprefix("kaspar: ")
