"""Keywords with a single number: added, removed, increased or decreased."""

from kaspar.schemas.json_schema.compatibility.comparison import Findings
from kaspar.schemas.json_schema.compatibility.differences import Kind
from kaspar.schemas.json_schema.nodes import Number


def compare_limit(found: Findings, keyword: str, name: str, original: Number | None, update: Number | None) -> None:
    """`name` is the common prefix of the four kinds of difference."""
    if original is None and update is None:
        return
    if original is None:
        change = "ADDED"
    elif update is None:
        change = "REMOVED"
    elif original == update:
        return
    else:
        change = "INCREASED" if original < update else "DECREASED"
    found.add(Kind[f"{name}_{change}"], keyword)
