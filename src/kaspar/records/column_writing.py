"""Builds record batches from columns in Arrow's layout, without an object for each record.

Rows are appended to the builder of their partition. A full batch is taken out of it and compressed if requested; then
it only lacks producer and CRC (records/identity.py).
"""

from kaspar.records.codec import Codec
from kaspar.records.core import column_writing as core
from kaspar.records.core import row_grouping
from kaspar.records.deflate import deflate
from kaspar.records.layout import HEADER, HEADER_SIZE, LENGTH_OVERHEAD, MAGIC

__all__ = [
    "BatchBuilder",
    "OctetColumn",
    "Partitioner",
    "RecordColumns",
    "TimestampColumn",
    "all_rows",
    "group_rows",
    "murmur2",
    "partition_of",
    "partitions_of_keys",
    "take_batch",
]

BatchBuilder = core.BatchBuilder
OctetColumn = core.OctetColumn
Partitioner = core.Partitioner
RecordColumns = core.RecordColumns
TimestampColumn = core.TimestampColumn
all_rows = row_grouping.all_rows
group_rows = row_grouping.group_rows
murmur2 = core.murmur2
partition_of = core.partition_of
partitions_of_keys = core.partitions_of_keys


def take_batch(builder: BatchBuilder, codec: Codec, level: int | None) -> memoryview:
    """Take the collected batch, without producer and CRC, out of the builder, which begins the next one."""
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
