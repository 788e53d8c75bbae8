"""JSON by a given schema, a column at a time, with the results of from_json.

Arrow reads all records of a batch at once, from their bytes joined by line feeds. It is used only where it is strict:
it does not convert between types, and if it rejects a run of records (it rejects all because of one), the run is split
until few are left, which json_rows then decodes one by one. So Arrow may accept less than from_json, but never more.
Its decimals are neither strict nor exact, above all with exponents: they are read in a type so wide that nothing
overflows, and records that may contain one with an exponent, or with more digits than that type holds, bypass Arrow.

Line feeds do not separate records, since Arrow ignores them: a record may contain some, or two documents. Only records
that begin with { and end with } are joined. No record can run into the next: a document that is still open after a }
may continue with a comma or a closing bracket, but not with a {. So there are at least as many documents as records,
and if the numbers are equal, each record is one document.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from kaspar.spark.formats.data_types import arrow_type_of
from kaspar.spark.formats.decoder import Decoded, collector_paused
from kaspar.spark.formats.json_rows import BadJson, reader_of
from kaspar.spark.formats.plain import NOT_UTF8, rows_without_utf8

PARTS = 8  # the number of parts into which a rejected run of records is split
FEW = 32  # runs of at most this many records are decoded one by one
DEEP = 500  # levels of nesting: each takes at least two bytes
MOST_BYTES = 1 << 30  # Arrow counts the bytes of a block with 32 bits

_READ_AS_THEY_ARE = (
    BooleanType, ByteType, ShortType, IntegerType, LongType, FloatType, DoubleType, StringType, TimestampType,
)  # fmt: skip
_WIDE_DECIMAL = pa.decimal256(76, 38)
_PERHAPS_NO_DECIMAL = (
    r"[0-9]{39}"
    r'|[:,\[\s"][-+]?[0-9.]+[eE][-+]?[0-9]+[,}\]\s"]'
    r"|\\u00[2-6]"  # an escaped digit or e
)


Rows = npt.NDArray[np.int64]


class JsonDecoder:
    def __init__(self, data_type: DataType) -> None:
        self.data_type = data_type
        self._arrow_type = arrow_type_of(data_type)
        self._read_row = reader_of(data_type)
        self._schema = schema_for_arrow(data_type)
        self._has_decimals = "decimal" in data_type.simpleString()

    def decode(self, column: pa.BinaryArray) -> Decoded:
        bad = dict.fromkeys(rows_without_utf8(column), NOT_UTF8)
        rows = np.arange(len(column), dtype=np.int64)
        if self._schema is None:
            return Decoded(self._one_by_one(column, rows, bad), bad)
        together = pc.and_(pc.starts_with(column, b"{"), pc.ends_with(column, b"}")).fill_null(False).to_numpy(False)
        together[list(bad)] = False
        together &= ~_may_be_deep(column)
        if self._has_decimals:
            together &= ~pc.match_substring_regex(column, _PERHAPS_NO_DECIMAL).fill_null(True).to_numpy(False)
        if together.all():
            values = _concatenated(self._together(column, rows, bad), self._arrow_type)
        else:
            some, others = rows[together], rows[~together]
            parts = [*self._together(column.take(some), some, bad), self._one_by_one(column.take(others), others, bad)]
            values = _concatenated(parts, self._arrow_type).take(np.argsort(np.concatenate([some, others])))
        return Decoded(values, dict(sorted(bad.items())))

    def _together(self, column: pa.BinaryArray, rows: Rows, bad: dict[int, str]) -> Iterator[pa.Array]:
        """The values of consecutive objects, in pieces. `rows` are their positions in the batch, for bad rows."""
        try:
            yield self._read_joined(column)
        except pa.ArrowInvalid:
            if len(column) <= FEW:
                yield self._one_by_one(column, rows, bad)
                return
            size = -(-len(column) // PARTS)
            for start in range(0, len(column), size):
                yield from self._together(column.slice(start, size), rows[start : start + size], bad)

    def _read_joined(self, column: pa.BinaryArray) -> pa.Array:
        if len(column) == 0:
            return pa.array([], self._arrow_type)
        if column.nbytes > MOST_BYTES and len(column) > FEW:
            raise pa.ArrowInvalid("too much for one block")
        joined = pc.binary_join(pa.LargeListArray.from_arrays([0, len(column)], column), b"\n")[0].as_buffer()
        table = pa.json.read_json(
            pa.BufferReader(joined),
            read_options=pa.json.ReadOptions(use_threads=False, block_size=joined.size + 1),
            parse_options=pa.json.ParseOptions(explicit_schema=self._schema, unexpected_field_behavior="ignore"),
        )
        if len(table) != len(column):
            raise pa.ArrowInvalid("a record holds more than one document")
        return table.to_struct_array().combine_chunks().cast(self._arrow_type)

    @collector_paused()
    def _one_by_one(self, column: pa.BinaryArray, rows: Rows, bad: dict[int, str]) -> pa.Array:
        values: list[object] = []
        for row, record in zip(rows.tolist(), column.to_pylist(), strict=True):
            value = None
            if record is not None and row not in bad:
                try:
                    value = self._read_row(record)
                except BadJson as error:
                    bad[row] = str(error)
            values.append(value)
        return pa.array(values, self._arrow_type)


def _may_be_deep(column: pa.BinaryArray) -> npt.NDArray[np.bool_]:
    """Which records may be nested deeper than json_rows allows; Arrow has no limit."""
    deep: npt.NDArray[np.bool_] = pc.greater_equal(pc.binary_length(column), 2 * DEEP).fill_null(False).to_numpy(False)
    if deep.any():
        long = column.filter(deep)
        opened = pc.add(pc.count_substring(long, b"["), pc.count_substring(long, b"{"))
        deep[deep] = pc.greater_equal(opened, DEEP).to_numpy(False)
    return deep


def schema_for_arrow(data_type: DataType) -> pa.Schema | None:
    """The schema for Arrow; None if Arrow cannot read all of the type: maps, base64, and roots that are not objects."""
    if not isinstance(data_type, StructType):
        return None
    try:
        return pa.schema(_type_for_arrow(data_type))
    except NotImplementedError:
        return None


def _type_for_arrow(data_type: DataType) -> pa.DataType:
    match data_type:
        case StructType():
            return pa.struct([pa.field(field.name, _type_for_arrow(field.dataType)) for field in data_type.fields])
        case ArrayType():
            return pa.list_(pa.field("element", _type_for_arrow(data_type.elementType)))
        case DateType() | TimestampNTZType():
            return pa.string()  # cast afterwards: Arrow would accept numbers as days, and ignore a time zone
        case DecimalType():
            return _WIDE_DECIMAL
        case _ if isinstance(data_type, _READ_AS_THEY_ARE):
            return arrow_type_of(data_type)
    raise NotImplementedError


def _concatenated(parts: Iterable[pa.Array], arrow_type: pa.DataType) -> pa.Array:
    parts = [part for part in parts if len(part)]
    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts) if parts else pa.array([], arrow_type)
