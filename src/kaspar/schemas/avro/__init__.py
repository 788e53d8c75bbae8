"""Avro schemas: parsing, canonical and normalized text, and compatibility, as Confluent's registry and the Java library
of Avro have them."""

from kaspar.schemas.avro.compatibility import incompatibilities
from kaspar.schemas.avro.schema import AvroSchema, parse

__all__ = ["AvroSchema", "incompatibilities", "parse"]
