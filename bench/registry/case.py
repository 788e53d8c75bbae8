"""The interface of a case: its rows, the programs that it compares, and the measurement of one of them."""

import importlib.metadata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from bench.registry import apicurio
from bench.rows import Row
from bench.sides import Role

if TYPE_CHECKING:
    from bench.registry.bench import RegistryBench


@dataclass(frozen=True, slots=True)
class Program:
    role: Role
    title: str
    path: str
    """The path at which Confluent's API begins."""


OURS = Program(Role.CANDIDATE, f"Kaspar {importlib.metadata.version('kaspar')}", "")
APICURIO = Program(Role.REFERENCE, f"Apicurio {apicurio.VERSION}", "/apis/ccompat/v7")


class RegistryCase(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def sides(self) -> Sequence[Program]: ...

    rows: tuple[Row, ...]

    def measure(self, bench: "RegistryBench", side: Program) -> Mapping[str, float]:
        """Return the values of its rows."""
