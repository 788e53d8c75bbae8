"""Parses the prefixes of a column's records: the schema that each was written with (serialization/wire_format.py).

The usual five bytes, magic byte and id, are read a column at a time; only records that begin with something else are
parsed one by one.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from kaspar.serialization.errors import UnreadableBytes
from kaspar.serialization.wire_format import SchemaKey, read_frame
from kaspar.spark.formats.avro_columns import Rows

_PREFIX = 5


@dataclass(frozen=True, slots=True)
class Frame:
    """Rows that were written with one schema, and the number of bytes before their data."""

    schema: SchemaKey
    rows: Rows
    prefix: int


def frames_of(column: pa.BinaryArray) -> tuple[list[Frame], dict[int, str]]:
    """The frames of all rows that are not null, and the reasons of rows without a valid prefix."""
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    _, offset_buffer, data_buffer = column.buffers()
    offsets = np.frombuffer(offset_buffer, np.int32)[column.offset : column.offset + len(column) + 1]
    data = np.frombuffer(data_buffer or b"", np.uint8)
    long_enough = np.flatnonzero(valid & (np.diff(offsets) >= _PREFIX)).astype(np.int32)
    framed = long_enough[data[offsets[long_enough]] == 0]
    starts = offsets[framed]
    ids = np.zeros(len(framed), np.uint32)
    for index in range(1, _PREFIX):
        ids = (ids << np.uint32(8)) | data[starts + index]
    frames = _by_id(ids, framed)
    valid[framed] = False
    others, bad = _one_by_one(column, np.flatnonzero(valid).astype(np.int32))
    return frames + others, bad


def without_prefix(column: pa.BinaryArray, frame: Frame) -> pa.BinaryArray:
    """The data of the frame's rows. (Arrow's binary_slice fails for columns of many bytes.)"""
    taken = column.take(pa.array(frame.rows))
    _, offset_buffer, data_buffer = taken.buffers()
    offsets = np.frombuffer(offset_buffer, np.int32)[taken.offset : taken.offset + len(taken) + 1]
    is_kept = np.ones(len(data_buffer), bool)
    is_kept[: offsets[0]] = is_kept[offsets[-1] :] = False
    is_kept[(offsets[:-1, None] + np.arange(frame.prefix)).ravel()] = False
    data = np.frombuffer(data_buffer, np.uint8)[is_kept]
    shorter = (offsets - offsets[0] - frame.prefix * np.arange(len(offsets))).astype(np.int32)
    return pa.Array.from_buffers(pa.binary(), len(taken), [None, pa.py_buffer(shorter), pa.py_buffer(data)])


def _by_id(ids: np.ndarray, rows: Rows) -> list[Frame]:
    if len(ids) == 0:
        return []
    if (ids == ids[0]).all():
        return [Frame(int(ids[0]), rows, _PREFIX)]
    return [Frame(int(each), rows[ids == each], _PREFIX) for each in np.unique(ids)]


def _one_by_one(column: pa.BinaryArray, rows: Rows) -> tuple[list[Frame], dict[int, str]]:
    bad: dict[int, str] = {}
    by_schema: dict[tuple[SchemaKey, int], list[int]] = {}
    for row in rows.tolist():
        try:
            framed = read_frame(column[row].as_py())
        except UnreadableBytes as problem:
            bad[row] = as_reason(problem)
        else:
            by_schema.setdefault((framed.schema, framed.start), []).append(row)
    frames = [Frame(schema, np.array(found, np.int32), start) for (schema, start), found in by_schema.items()]
    return frames, bad


def as_reason(problem: Exception) -> str:
    """The text of an error, so that it can end another sentence."""
    text = str(problem).strip().rstrip(".")
    return text[:1].lower() + text[1:]
