"""The topologies of java/, written with kaspar.streams under the same names, in files of the same names."""

from tests.streams.compat.topologies import (
    aggregations,
    chains,
    join_corners,
    joins,
    processors,
    stateless,
    suppress,
    tables,
    windows,
)
from tests.streams.compat.topologies.operators import OPERATORS, PREFIX, chain
from tests.streams.compat.topologies.registry import DEFINITIONS, Definition


def definition_of(topology: str) -> Definition:
    """By name: one of the table, or a chain of operators."""
    if topology.startswith(PREFIX):
        return chain(topology.removeprefix(PREFIX).split(", "))
    return DEFINITIONS[topology]


__all__ = [
    "DEFINITIONS",
    "OPERATORS",
    "PREFIX",
    "Definition",
    "aggregations",
    "chain",
    "chains",
    "definition_of",
    "join_corners",
    "joins",
    "processors",
    "stateless",
    "suppress",
    "tables",
    "windows",
]
