"""How an actor gets its settings, and the client settings that all of them share."""

import json
import signal
import subprocess
import sys
import threading
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from tests.chaos.history import Journal

ROOT = Path(__file__).parents[3]

IMPATIENT: dict[str, str | int] = {
    # Otherwise a client that has lost its only broker asks for metadata once a second, which is as often as we kill.
    "metadata.recovery.strategy": "none",
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 100,
    "retry.backoff.ms": 10,
    "retry.backoff.max.ms": 100,
    "log_level": 0,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`client`: settings of its Kafka clients beside those that all actors share."""

    actor: str
    journals: str
    bootstrap: str
    seed: int
    client: dict[str, str | int] = field(default_factory=dict)

    def journal(self) -> Journal:
        return Journal(Path(self.journals), self.actor)


AnySettings = TypeVar("AnySettings", bound=Settings)


def start(module: str, settings: Settings, errors: Path) -> subprocess.Popen[bytes]:
    """Run an actor. What it prints, it prints because something went wrong."""
    with errors.open("ab") as file:
        command = [sys.executable, "-m", module, json.dumps(asdict(settings))]
        return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT)


def read_settings(kind: type[AnySettings]) -> AnySettings:
    fields: dict[str, Any] = json.loads(sys.argv[1])
    return kind(**fields)


def stop_at_sigterm() -> threading.Event:
    """Set when the actor is asked to stop."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: stop.set())
    return stop
