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
from tests.streams.compat.topologies.registry import DEFINITIONS, Definition

__all__ = [
    "DEFINITIONS",
    "Definition",
    "aggregations",
    "chains",
    "join_corners",
    "joins",
    "processors",
    "stateless",
    "suppress",
    "tables",
    "windows",
]
