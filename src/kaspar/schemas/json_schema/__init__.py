"""JSON Schema, drafts 4, 6, 7, 2019-09 and 2020-12: parsing, Confluent's compatibility rules, and validation."""

from collections.abc import Sequence

from kaspar.schemas.json_schema.compatibility import incompatibilities_of
from kaspar.schemas.json_schema.parsing import JsonSchema, parse
from kaspar.schemas.schema import ParsedSchema

__all__ = ["JsonSchema", "incompatibilities", "parse"]


def incompatibilities(reader: ParsedSchema, writer: ParsedSchema, *, lenient: bool = False) -> Sequence[str]:
    """Why `reader` cannot read data of `writer`. `lenient` is the registry's `compatibilityPolicy`."""
    assert isinstance(reader, JsonSchema)
    assert isinstance(writer, JsonSchema)
    return incompatibilities_of(reader.root, writer.root, lenient=lenient)
