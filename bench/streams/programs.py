"""A streams program of each kind as a process, on its own broker."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.programs import LoadError
from bench.sides import Role
from tests.peers.downloads import cached, require_tool, run_step
from tests.peers.java_program import compiled, platform_jars

_HERE = Path(__file__).parent
_ROOT = _HERE.parents[1]
_PEERS = _HERE / "peers"
_VERSIONS = {"quixstreams": "3.28.1", "faust-streaming": "0.15.3"}
_STOP_SECONDS = 30.0

Command = Callable[[], Sequence[str | Path]]


@dataclass(frozen=True, slots=True)
class Side:
    """A side of the comparison: the command of a program, without the arguments that all of them take."""

    role: Role
    title: str
    command: Command


def _ours() -> Sequence[str | Path]:
    return [sys.executable, "-m", "bench.streams.ours"]


def _kafka_streams() -> Sequence[str | Path]:
    classes = compiled("bench-kafka-streams", [_PEERS / "KafkaStreamsPrograms.java"])
    options = ["-Xmx1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
    return [require_tool("java"), *options, "-cp", f"{classes}:{platform_jars()}/*", "KafkaStreamsPrograms"]


def _python_peer(package: str, program: str) -> Command:
    """A program in a virtual environment that has this package and none of ours."""

    def build(folder: Path, attempt: int) -> None:
        del attempt
        run_step([sys.executable, "-m", "venv", folder / "venv"], folder=folder)
        wanted = f"{package}=={_VERSIONS[package]}"
        run_step([folder / "venv/bin/pip", "install", "--quiet", wanted, "setuptools<81"], folder=folder)

    def command() -> Sequence[str | Path]:
        folder = cached(f"bench-{package}-{_VERSIONS[package]}", [_PEERS / program], build)
        return [folder / "venv/bin/python", _PEERS / program]

    return command


OURS = Side(Role.CANDIDATE, "kaspar.streams", _ours)
KAFKA_STREAMS = Side(Role.REFERENCE, "Kafka Streams", _kafka_streams)
QUIX = Side(Role.REFERENCE, "Quix Streams", _python_peer("quixstreams", "quix_programs.py"))
FAUST = Side(Role.REFERENCE, "Faust", _python_peer("faust-streaming", "faust_programs.py"))


def versions() -> str:
    return ", ".join(f"{package} {version}" for package, version in _VERSIONS.items())


def state_folder(side: Side, folder: Path, application: str) -> Path:
    """The files of the stores in a program's folder: all files of Kafka Streams, and ours without checkpoints."""
    return folder / "state" / application / "state" if side is OURS else folder / "state"


@contextmanager
def running(
    side: Side, program: str, bootstrap: str, application: str, guarantee: str, folder: Path
) -> Iterator[Callable[[], None]]:
    """Run a program. Yields a function that raises LoadError if it has ended."""
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "program.log"
    command = [*side.command(), program, bootstrap, application, guarantee, folder / "state"]
    environment = os.environ | {"PYTHONPATH": str(_ROOT) if side is OURS else ""}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd=folder,
            start_new_session=True,
        )

    def check() -> None:
        if process.poll() is not None:
            last = log.read_text(errors="replace").strip().splitlines()[-1:] or ["without a word"]
            raise LoadError(f"{side.title} has ended: {last[0]}")

    try:
        yield check
    finally:
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
