"""The table of topologies: names, the topics they read, and the functions that build them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from kaspar.streams import StreamsBuilder

Build: TypeAlias = Callable[[StreamsBuilder], object]


@dataclass(frozen=True, slots=True)
class Definition:
    name: str
    topics: Sequence[str]
    build: Build


DEFINITIONS: dict[str, Definition] = {}


def define(name: str, topics: str, build: Build) -> None:
    """`topics` are separated by spaces."""
    assert name not in DEFINITIONS, f"two topologies are named {name}"
    DEFINITIONS[name] = Definition(name, topics.split(), build)
