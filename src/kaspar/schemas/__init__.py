"""Schemas of records: Avro, JSON Schema and Protobuf. Parsing, canonical text, references, and compatibility; no I/O.

A schema is a stranger's text: every parser here is bounded in time, depth and memory, and raises InvalidSchema with a
sentence, whatever the text is. Nothing is ever fetched: what a schema refers to is given with it.
"""

from kaspar.schemas.schema import (
    Entity,
    EntityType,
    Format,
    InvalidSchema,
    ParsedSchema,
    Reference,
    SchemaType,
    format_of,
)

__all__ = [
    "Entity",
    "EntityType",
    "Format",
    "InvalidSchema",
    "ParsedSchema",
    "Reference",
    "SchemaType",
    "format_of",
]
