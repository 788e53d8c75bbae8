"""Schemas of records: Avro, JSON Schema and Protobuf. Parsing, canonical text, references, and compatibility; no I/O.

Schemas are untrusted: every parser here is bounded in time, depth and memory, and raises InvalidSchema with a message
for any text that it cannot accept. Nothing is ever fetched: the schemas that a schema refers to are given with it.
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
