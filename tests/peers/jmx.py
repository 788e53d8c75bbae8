"""The counters of a running Apache Kafka, read over JMX.

kafka = ApacheKafka(folder, jvm_flags=(*LIGHT_JVM, *jmx_flags(port)))
with JmxCounts(port) as jmx:
    jmx.read("kafka.server:type=BrokerTopicMetrics,*")
"""

import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.peers.downloads import require_tool
from tests.peers.kafka import LIGHT_JVM

PROGRAMS = Path(__file__).parent.parent / "compat" / "drivers" / "java"
_YAMMER = {"Value", "Count"}


def jmx_flags(port: int) -> tuple[str, ...]:
    """JVM options that serve JMX on this port of the loopback address only."""
    remote = "-Dcom.sun.management.jmxremote"
    return (
        f"{remote}.port={port}",
        f"{remote}.rmi.port={port}",
        f"{remote}.host=127.0.0.1",
        "-Djava.rmi.server.hostname=127.0.0.1",
        f"{remote}.authenticate=false",
        f"{remote}.ssl=false",
    )


def metric_names(port: int) -> set[str]:
    """Every MBean that it has, with each of its attributes behind a space, unless it is one of Yammer's: these have a
    Value or a Count, and the same attributes all.
    """
    command = [require_tool("java"), "-Xmx128m", *LIGHT_JVM, str(PROGRAMS / "MetricNames.java"), str(port)]
    text = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    attributes: dict[str, set[str]] = {}
    for line in text.splitlines():
        name, _, attribute = line.partition("\t")
        attributes.setdefault(name, set()).add(attribute)
    return {
        mbean
        for name, of_it in attributes.items()
        for mbean in ([name] if of_it & _YAMMER else [f"{name} {attribute}" for attribute in of_it])
    }


class JmxCounts:
    """A small Java program asks, since JMX is Java's own protocol. It is started once, for its start takes longest."""

    def __init__(self, port: int) -> None:
        command = [require_tool("java"), "-Xmx128m", *LIGHT_JVM, str(PROGRAMS / "MetricCounts.java"), str(port)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def read(self, pattern: str) -> dict[str, int]:
        """The count of each MBean whose name matches, by its name."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{pattern}\n")
        self._process.stdin.flush()
        counts = {}
        while line := self._process.stdout.readline().rstrip("\n"):
            name, _, count = line.partition("\t")
            counts[name] = int(count)
        assert self._process.poll() is None, "the program that asks Kafka has ended"
        return counts

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._process:  # closes its input, at whose end it ends
            pass
