"""The topologies of java/, written with kaspar.streams under the same names, in files of the same names."""

from tests.streams.compat.topologies import (
    aggregations,
    chains,
    join_corners,
    joins,
    operators,
    processors,
    stateless,
    suppress,
    table_operators,
    tables,
    windows,
)
from tests.streams.compat.topologies.operators import OPERATORS, chain
from tests.streams.compat.topologies.registry import DEFINITIONS, Definition
from tests.streams.compat.topologies.table_operators import OPERATORS as TABLE_OPERATORS
from tests.streams.compat.topologies.table_operators import table_chain

__all__ = [
    "DEFINITIONS",
    "OPERATORS",
    "TABLE_OPERATORS",
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
    "table_chain",
    "tables",
    "windows",
]


def definition_of(topology: str) -> Definition:
    """By name: one of the table, or a chain of operators."""
    if topology.startswith(operators.PREFIX):
        return chain(topology.removeprefix(operators.PREFIX).split(", "))
    if topology.startswith(table_operators.PREFIX):
        return table_chain(topology.removeprefix(table_operators.PREFIX).split(", "))
    return DEFINITIONS[topology]
