"""Makes record batches of columns in Arrow's layout, without an object for a record.

Rows are given to the builder of their partition. A batch that is full is taken out of it, compressed if asked for: it
has all but an identity (records/identity.py). This module chooses the form of the compiled core.
"""

from typing import TYPE_CHECKING

from kaspar.base.compiled import load
from kaspar.records.batch import HEADER, HEADER_SIZE, LENGTH_OVERHEAD, MAGIC
from kaspar.records.codec import Codec
from kaspar.records.deflate import deflate

if TYPE_CHECKING:
    from kaspar.records import column_writing_core as core
else:
    core = load("kaspar.records.column_writing_core")

__all__ = [
    "BatchBuilder",
    "OctetColumn",
    "Partitioner",
    "RecordColumns",
    "all_rows",
    "group_rows",
    "murmur2",
    "take_batch",
]

BatchBuilder = core.BatchBuilder
OctetColumn = core.OctetColumn
Partitioner = core.Partitioner
RecordColumns = core.RecordColumns
all_rows = core.all_rows
group_rows = core.group_rows
murmur2 = core.murmur2


def take_batch(builder: BatchBuilder, codec: Codec, level: int | None) -> memoryview:
    """The batch that was collected, without identity. The builder begins the next one."""
    batch = builder.view()
    if codec is not Codec.NONE:
        compressed = bytearray(HEADER_SIZE)
        for piece in deflate(codec, [batch[HEADER_SIZE:]], level):
            compressed += piece
        batch = memoryview(compressed)
    HEADER.pack_into(
        batch,
        0,
        0,  # base offset
        len(batch) - LENGTH_OVERHEAD,
        -1,  # leader epoch
        MAGIC,
        0,  # crc
        codec,
        builder.count - 1,
        builder.base_timestamp,
        builder.max_timestamp,
        -1,  # producer id
        -1,  # producer epoch
        -1,  # base sequence
        builder.count,
    )
    builder.clear(reuse=codec is not Codec.NONE)
    return batch
