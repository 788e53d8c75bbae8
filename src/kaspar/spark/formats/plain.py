"""Raw bytes, and UTF-8 strings: checked a column at a time, without an object per row."""

import pyarrow as pa
from pyspark.sql.types import BinaryType, DataType, StringType

from kaspar.spark.formats.decoder import Decoded, rows_refused


class BytesDecoder:
    data_type: DataType = BinaryType()

    def decode(self, column: pa.BinaryArray) -> Decoded:
        return Decoded(column)


class StringDecoder:
    data_type: DataType = StringType()

    def decode(self, column: pa.BinaryArray) -> Decoded:
        bad = dict.fromkeys(rows_without_utf8(column), NOT_UTF8)
        return Decoded((without(column, bad) if bad else column).cast(pa.string()), bad)


NOT_UTF8 = "it is not text in UTF-8"


def rows_without_utf8(column: pa.BinaryArray) -> list[int]:
    def accepts(start: int, end: int) -> bool:
        try:
            column.slice(start, end - start).cast(pa.string())
        except pa.ArrowInvalid:
            return False
        return True

    return rows_refused(accepts, 0, len(column))


def without(column: pa.Array, rows: dict[int, str]) -> pa.Array:
    """The column with these rows set to null."""
    stays = pa.array([None if row in rows else row for row in range(len(column))], pa.int64())
    return column.take(stays)
