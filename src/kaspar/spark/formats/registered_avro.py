"""Avro records prefixed with a schema's id: each is read by the schema it was written with, as the reader's schema.

The reader's schema is fixed when the query is planned, and so are the columns. New versions of the writer's schema are
looked up when they appear, and resolved to it.
"""

from functools import lru_cache

import pyarrow as pa

from kaspar.schemas.schema import SchemaType
from kaspar.serialization.registry_client import RegisteredSchema
from kaspar.serialization.registry_config import RegistryConfig
from kaspar.serialization.wire_format import SchemaKey
from kaspar.spark.formats.avro_columns import read_rows
from kaspar.spark.formats.avro_program import Mismatch, Program, plan
from kaspar.spark.formats.avro_types import parsed, spark_type
from kaspar.spark.formats.data_types import arrow_type_of
from kaspar.spark.formats.decoder import Decoded, in_rows
from kaspar.spark.formats.registered_schemas import RegisteredSchemas, UnreadableSchema
from kaspar.spark.formats.registry_frames import frames_of
from kaspar.spark.kafka_settings import InvalidOption


class RegisteredAvroDecoder:
    def __init__(self, reader_schema: str, registry: RegistryConfig) -> None:
        """Raises InvalidOption if no column can hold the reader's schema."""
        self.data_type = spark_type(parsed(reader_schema))
        self._arrow_type = arrow_type_of(self.data_type)
        self._reader_schema = reader_schema
        self._schemas = RegisteredSchemas(registry, SchemaType.AVRO)

    def decode(self, column: pa.BinaryArray) -> Decoded:
        frames, bad = frames_of(column)
        parts = []
        for frame in frames:
            try:
                program = self._program(frame.schema)
            except UnreadableSchema as problem:
                bad.update(dict.fromkeys(frame.rows.tolist(), str(problem)))
                continue
            values, why = read_rows(program, column, frame.rows, self._arrow_type, prefix=frame.prefix)
            parts.append((frame.rows, values))
            bad.update((int(frame.rows[row]), reason) for row, reason in why.items())
        if len(parts) == 1 and len(parts[0][0]) == len(column):
            return Decoded(parts[0][1], bad)
        values = in_rows(parts, len(column)) if parts else pa.nulls(len(column), self._arrow_type)
        return Decoded(values, dict(sorted(bad.items())))

    def _program(self, key: SchemaKey) -> Program:
        found = self._schemas.find(key)
        result = _planned(found.schema.text, tuple(found.referenced.items()), self._reader_schema)
        if isinstance(result, str):
            raise UnreadableSchema(f"its schema {_named(found, key)} {result}")
        return result


def _named(found: RegisteredSchema, key: SchemaKey) -> str:
    return f"{key}" if found.subject is None else f"{key} (of {found.subject})"


@lru_cache(maxsize=256)
def _planned(text: str, references: tuple[tuple[str, str], ...], reader_schema: str) -> Program | str:
    """The program for records of a schema, or why they cannot be read. Cached for later tasks of this worker."""
    try:
        return plan(parsed(text, dict(references)), parsed(reader_schema), has_bare_bytes=True)
    except InvalidOption as problem:
        return f"cannot be used: {problem}"
    except Mismatch as mismatch:
        return f"cannot be read as the reader's schema: {mismatch}"
