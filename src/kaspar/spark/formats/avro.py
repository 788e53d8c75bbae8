"""Avro records (without a file header), by a given schema and optionally a reader schema.

Each record is read in one pass, by a plan that combines both schemas, and its values are written straight into Arrow's
buffers: no Python object is created for a record or a value.
"""

import numpy as np
import pyarrow as pa

from kaspar.spark.formats.avro_columns import read_rows
from kaspar.spark.formats.avro_program import Mismatch, plan
from kaspar.spark.formats.avro_types import parsed, spark_type
from kaspar.spark.formats.data_types import arrow_type_of
from kaspar.spark.formats.decoder import Decoded, in_rows
from kaspar.spark.kafka_settings import InvalidOption


class AvroDecoder:
    """Raises InvalidOption if no column can hold a schema, or if data of one schema cannot be read as the other."""

    def __init__(self, schema: str, reader_schema: str | None = None) -> None:
        reader = parsed(reader_schema or schema)
        self.data_type = spark_type(reader)
        self._arrow_type = arrow_type_of(self.data_type)
        writer = reader if reader_schema is None else parsed(schema)
        try:
            self._program = plan(writer, reader)
        except Mismatch as mismatch:
            raise InvalidOption(f"the Avro schema cannot be read as the reader schema: {mismatch}.") from mismatch

    def decode(self, column: pa.BinaryArray) -> Decoded:
        rows = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False)).astype(np.int32)
        values, bad = read_rows(self._program, column, rows, self._arrow_type)
        if len(rows) == len(column):
            return Decoded(values, bad)
        return Decoded(in_rows([(rows, values)], len(column)), {int(rows[row]): why for row, why in bad.items()})
