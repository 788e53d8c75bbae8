"""The columns of a read as Arrow arrays of exactly the types that Spark expects, without copying.

Topic and partition are the same in every row of a range, so their arrays are built once and sliced; Spark accepts no
dictionary arrays here. All arrays are built from buffers: passing a Python object to pyarrow makes it load pandas.
"""

import struct
from array import array
from collections.abc import Sequence

import msgspec
import pyarrow as pa

from kaspar.base.ids import TopicPartition
from kaspar.records.column_reading import Columns, HeadersColumn, OctetsColumn
from kaspar.records.column_writing import OctetColumn, partitions_of_keys

_HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])

_TYPES = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestampType": pa.int32(),
    "headers": pa.list_(pa.field("element", _HEADER)),
    "headerBytes": pa.binary(),
    "keyPartition": pa.int32(),
}


class ArrowColumns:
    """Builds the record batches of one partition, with the named columns in the given order.

    `key_partitions` is the number of partitions for the column `keyPartition`.
    """

    def __init__(self, partition: TopicPartition, names: Sequence[str], key_partitions: int | None = None) -> None:
        self.schema = pa.schema([pa.field(name, _TYPES[name]) for name in names])
        self._names = tuple(names)
        self._partition = partition
        self._key_partitions = key_partitions
        self._topics: pa.Array | None = None
        self._partitions: pa.Array | None = None

    def record_batch(self, columns: Columns) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([self._array(name, columns) for name in self._names], schema=self.schema)

    def _array(self, name: str, columns: Columns) -> pa.Array:
        match name:
            case "key":
                return _octets(columns.key, pa.binary())
            case "value":
                return _octets(columns.value, pa.binary())
            case "offset":
                return _numbers(columns.rows, columns.offset, _TYPES[name])
            case "timestamp":
                return _numbers(columns.rows, columns.timestamp, _TYPES[name])
            case "timestampType":
                return _numbers(columns.rows, columns.timestamp_type, _TYPES[name])
            case "headers":
                return _headers(columns.rows, columns.headers)
            case "headerBytes":
                return _header_bytes(_headers(columns.rows, columns.headers))
            case "keyPartition":
                return self._partitions_of(columns.key)
            case "topic":
                if self._topics is None or len(self._topics) < columns.rows:
                    self._topics = _repeated_text(columns.rows, self._partition.topic)
                return self._topics.slice(0, columns.rows)
            case "partition":
                if self._partitions is None or len(self._partitions) < columns.rows:
                    self._partitions = _repeated_number(columns.rows, self._partition.partition)
                return self._partitions.slice(0, columns.rows)
        raise ValueError(f"no column is named {name}")

    def _partitions_of(self, keys: OctetsColumn) -> pa.Array:
        """The partition to which Kafka's clients assign each key. Records without a key get the number of the partition
        that they are read from (modulo `key_partitions`), so that they stay together."""
        assert self._key_partitions is not None, "the options of a read have it where they name the column"
        others = struct.pack("=i", self._partition.partition % self._key_partitions) * keys.rows if keys.nulls else None
        partitions = partitions_of_keys(
            OctetColumn(keys.rows, keys.offsets.cast("B").cast("i"), keys.data, keys.validity if keys.nulls else None),
            self._key_partitions,
            None if others is None else memoryview(others).cast("i"),
        )
        return pa.Array.from_buffers(pa.int32(), keys.rows, [None, pa.py_buffer(partitions)], 0)


def _repeated_text(rows: int, text: str) -> pa.Array:
    data = text.encode()
    offsets = array("i", range(0, len(data) * rows + 1, len(data)))
    return pa.Array.from_buffers(pa.string(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(data * rows)], 0)


def _repeated_number(rows: int, number: int) -> pa.Array:
    return pa.Array.from_buffers(pa.int32(), rows, [None, pa.py_buffer(struct.pack("=i", number) * rows)], 0)


def _numbers(rows: int, numbers: memoryview, kind: pa.DataType) -> pa.Array:
    return pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(numbers)], 0)


def _octets(column: OctetsColumn, kind: pa.DataType) -> pa.Array:
    validity = pa.py_buffer(column.validity) if column.nulls else None
    buffers = [validity, pa.py_buffer(column.offsets), pa.py_buffer(column.data)]
    return pa.Array.from_buffers(kind, column.rows, buffers, column.nulls)


def _headers(rows: int, column: HeadersColumn) -> pa.Array:
    keys = _texts(_octets(column.keys, pa.binary()))
    values = _octets(column.values, pa.binary())
    entries = pa.Array.from_buffers(_HEADER, len(keys), [None], 0, children=[keys, values])
    validity = pa.py_buffer(column.validity) if column.nulls else None
    buffers = [validity, pa.py_buffer(column.offsets)]
    return pa.Array.from_buffers(_TYPES["headers"], rows, buffers, column.nulls, children=[entries])


def _header_bytes(headers: pa.Array) -> pa.Array:
    """The headers of each record as MessagePack, a list of pairs; null for a record without headers.

    Spark takes quadratic time in the number of rows to pass a column of arrays to a Python function: seconds for a
    batch of 50,000.
    """
    if headers.null_count == len(headers):
        return pa.nulls(len(headers), pa.binary())
    encode = msgspec.msgpack.encode
    return pa.array(
        [
            None if each is None else encode([(header["key"], header["value"]) for header in each])
            for each in headers.to_pylist()
        ],
        pa.binary(),
    )


def _texts(keys: pa.Array) -> pa.Array:
    """Header keys as strings. They may hold any bytes: invalid UTF-8 is replaced, as Kafka's clients do."""
    try:
        return keys.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([key.decode("utf-8", "replace") for key in keys.to_pylist()], pa.string())
