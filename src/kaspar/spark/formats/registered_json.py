"""JSON records prefixed with a schema's id. The schema must be known to the registry, but a record is not validated
against it: the columns are those of the reader."""

import pyarrow as pa
from pyspark.sql.types import DataType

from kaspar.schemas.schema import SchemaType
from kaspar.serialization.registry_config import RegistryConfig
from kaspar.spark.formats.decoder import Decoded, in_rows
from kaspar.spark.formats.json_columns import JsonDecoder
from kaspar.spark.formats.registered_schemas import RegisteredSchemas, UnreadableSchema
from kaspar.spark.formats.registry_frames import frames_of, without_prefix


class RegisteredJsonDecoder:
    def __init__(self, data_type: DataType, registry: RegistryConfig) -> None:
        self._decoder = JsonDecoder(data_type)
        self.data_type = self._decoder.data_type
        self._schemas = RegisteredSchemas(registry, SchemaType.JSON)

    def decode(self, column: pa.BinaryArray) -> Decoded:
        frames, bad = frames_of(column)
        parts = []
        for frame in frames:
            try:
                self._schemas.find(frame.schema)
            except UnreadableSchema as problem:
                bad.update(dict.fromkeys(frame.rows.tolist(), str(problem)))
            else:
                parts.append((frame.rows, without_prefix(column, frame)))
        if not parts:
            return Decoded(self._decoder.decode(pa.nulls(len(column), pa.binary())).values, bad)
        done = self._decoder.decode(in_rows(parts, len(column)))
        return Decoded(done.values, dict(sorted({**bad, **done.bad}.items())))
