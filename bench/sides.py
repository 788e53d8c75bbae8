"""The two brokers that are compared, with a common interface.

Both run with their own defaults, each as one process on the same machine, its data in a folder of the same file system.
A few settings are changed for both: deleted topics are removed from disk after a second, so that the memory of a tmpfs
is sufficient; internal topics have one replica, because there is one broker; groups do not wait for more members, and
the limits of heartbeat intervals allow those of the load. Apache Kafka gets the heap and JVM flags of its own start
script. Kaspar runs with its compiled core.
"""

import enum
import importlib.metadata
import platform
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.peers.downloads import require_tool
from tests.peers.kafka import KAFKA_JVM, KAFKA_VERSION, ApacheKafka
from tests.peers.kaspar import KasparProcess
from tests.peers.process import BrokerProcess

KAFKA_HEAP = "1g"
SETTINGS: Mapping[str, str] = {
    "log.segment.delete.delay.ms": "1000",
    "offsets.topic.num.partitions": "50",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
}


# Like an installation: with the compiled core and cached bytecode, whatever this shell's environment says.
KASPAR_ENVIRONMENT: Mapping[str, str] = {"KASPAR_COMPILED": "1", "PYTHONDONTWRITEBYTECODE": ""}


class Role(enum.Enum):
    """The role in a ratio, which is the candidate's value divided by the reference's."""

    CANDIDATE = "candidate"
    REFERENCE = "reference"


@dataclass(frozen=True, slots=True)
class Side:
    role: Role
    name: str  # one word, for progress lines and --target
    title: str
    make: Callable[[Path], BrokerProcess]
    runtime: Callable[[], str]  # what it runs on, as text


def _make_kaspar(folder: Path) -> BrokerProcess:
    return KasparProcess(folder, overrides=SETTINGS, environment=KASPAR_ENVIRONMENT)


def _make_kafka(folder: Path) -> BrokerProcess:
    return ApacheKafka(folder, heap=KAFKA_HEAP, overrides=SETTINGS, jvm_flags=KAFKA_JVM)


def _python() -> str:
    return f"Python {platform.python_version()}, with its compiled core"


def _java() -> str:
    printed = subprocess.run([require_tool("java"), "-version"], capture_output=True, text=True, check=True).stderr
    return f"{printed.splitlines()[0]}, heap {KAFKA_HEAP}"


def kaspar() -> Side:
    return Side(Role.CANDIDATE, "kaspar", f"Kaspar {importlib.metadata.version('kaspar')}", _make_kaspar, _python)


def kafka() -> Side:
    return Side(Role.REFERENCE, "kafka", f"Apache Kafka {KAFKA_VERSION}", _make_kafka, _java)


def earlier(checkout: Path) -> Side:
    """Another checkout of Kaspar in Kafka's place, in the environment of its `make install`, to find regressions."""
    start = checkout / ".venv" / "bin" / "kafka-server-start"
    if not start.exists():
        raise FileNotFoundError(f"{start} is not there: run 'make install' in {checkout}")

    def make(folder: Path) -> BrokerProcess:
        return KasparProcess(folder, overrides=SETTINGS, environment=KASPAR_ENVIRONMENT, program=start)

    return Side(Role.REFERENCE, "earlier", "Kaspar, the earlier checkout", make, _python)


def kafka_again() -> Side:
    """Apache Kafka in Kaspar's place. Every ratio should be near 1; the difference shows how accurate ratios are."""
    return Side(Role.CANDIDATE, "kafka-again", f"Apache Kafka {KAFKA_VERSION} again", _make_kafka, _java)
