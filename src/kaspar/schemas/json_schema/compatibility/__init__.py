"""Confluent's compatibility rules for JSON Schema."""

from collections.abc import Sequence
from typing import Final

from kaspar.schemas.json_schema.compatibility.comparison import Comparison, TooComplex
from kaspar.schemas.json_schema.compatibility.differences import LENIENT, STRICT, Difference
from kaspar.schemas.json_schema.compatibility.rules import compare_schemas
from kaspar.schemas.json_schema.nodes import Schema

__all__ = ["TOO_COMPLEX", "compare", "incompatibilities_of"]

TOO_COMPLEX: Final = (
    '{errorType:"SCHEMA_TOO_COMPLEX", description:"The %s schema cannot be compared with the %s schema: their'
    ' references are nested too deeply, or have too many combinations"}'
)


def compare(original: Schema, update: Schema, *, lenient: bool = False) -> Sequence[Difference]:
    """All differences. Raises TooComplex."""
    return Comparison(compare_schemas, LENIENT if lenient else STRICT).run(original, update)


def incompatibilities_of(reader: Schema, writer: Schema, *, lenient: bool = False) -> list[str]:
    accepted = LENIENT if lenient else STRICT
    try:
        found = compare(writer, reader, lenient=lenient)
    except (TooComplex, RecursionError):
        return [TOO_COMPLEX]
    return [str(difference) for difference in found if difference.kind not in accepted]
