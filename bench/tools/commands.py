"""Kafka's commands and ours as processes: their command lines, and how they are run."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence

from bench.programs import LoadError
from bench.sides import KASPAR_ENVIRONMENT
from bench.tools.case import OURS, Program
from tests.compat.commands.catalog import COMMANDS, entry_points
from tests.peers.downloads import require_tool
from tests.peers.kafka import KAFKA_JVM, classpath

_RUN_SECONDS = 120.0


def command_line(side: Program, name: str, *arguments: str) -> list[str]:
    """Ours as its entry point starts it. Kafka's as its script does, but without the shell's own time; the heap and the
    JVM flags are those of the script."""
    if side is OURS:
        module, function = entry_points()[name].split(":")
        return [
            sys.executable,
            "-c",
            f"import sys; from {module} import {function}; sys.exit({function}())",
            *arguments,
        ]
    java = [require_tool("java"), "-Xmx256M", *KAFKA_JVM, "-cp", classpath()]
    return [*java, COMMANDS[name].kafka_class, *arguments]


def seconds_of(command: Sequence[str]) -> float:
    """Run the command. Returns its duration. Raises LoadError if it fails."""
    began = time.perf_counter()
    output_of(command)
    return time.perf_counter() - began


def output_of(command: Sequence[str]) -> str:
    """Run the command. Returns its output, including errors. Raises LoadError if it fails."""
    done = subprocess.run(
        command,
        env={**os.environ, **KASPAR_ENVIRONMENT},
        capture_output=True,
        text=True,
        timeout=_RUN_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise LoadError(f"{command[0]} ended with {done.returncode}: {done.stderr or done.stdout}")
    return done.stdout + done.stderr
