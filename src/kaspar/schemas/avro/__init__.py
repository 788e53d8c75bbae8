"""Avro schemas: parsing, canonical and normalized text, and compatibility, as in Confluent's registry and Java's
Avro."""

from kaspar.schemas.avro.compatibility import incompatibilities
from kaspar.schemas.avro.schema import AvroSchema, parse

__all__ = ["AvroSchema", "incompatibilities", "parse"]
