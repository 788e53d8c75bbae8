"""The interface of a case: its rows, the two programs that it compares, and the measurement of one of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from bench.rows import Row
from bench.sides import Role
from tests.peers.kafka import KAFKA_VERSION
from tests.peers.process import BrokerProcess
from tests.peers.rdkafka_performance import librdkafka_version


@dataclass(frozen=True, slots=True)
class Program:
    role: Role
    title: str


OURS = Program(Role.CANDIDATE, "Kaspar's command")
KAFKAS = Program(Role.REFERENCE, f"that of Apache Kafka {KAFKA_VERSION}")
RDKAFKA = Program(Role.REFERENCE, f"rdkafka_performance {librdkafka_version()}")


class ToolCase(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def sides(self) -> Sequence[Program]: ...

    rows: tuple[Row, ...]

    def measure(self, broker: BrokerProcess, side: Program, scale: float) -> Mapping[str, float]:
        """Return the values of its rows on this broker. `scale` is the part of the full load to use."""
