"""A read task, of a batch or a micro-batch."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from kaspar.spark.errors import naming_brokers, without_traceback
from kaspar.spark.garbage import freeze_loaded_objects
from kaspar.spark.reading.options import ReadOptions
from kaspar.spark.reading.planning import OffsetRange, ReadTask

if TYPE_CHECKING:
    from pyarrow import RecordBatch


def read_task(partition: InputPartition, options: ReadOptions) -> "Iterator[RecordBatch]":
    """The rows of its ranges. If a batch has nothing to read, Spark still starts one task, without a ReadTask."""
    if not isinstance(partition, ReadTask):
        return
    from kaspar.spark.reading.fetching import read_range

    with without_traceback(), naming_brokers(options.connection.bootstrap_servers):
        ranges: Sequence[OffsetRange] = partition.ranges
        if any(each.binds_late for each in ranges):
            from kaspar.spark.reading.late_binding import bound_now

            ranges = bound_now(ranges, options)
        for each in ranges:
            if len(each):
                yield from read_range(each, options)
    freeze_loaded_objects()
