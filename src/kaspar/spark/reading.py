"""What a task does, for a batch and for a micro-batch."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from kaspar.spark.garbage import set_aside_what_is_loaded
from kaspar.spark.options import ReadOptions
from kaspar.spark.planning import OffsetRange, ReadTask
from kaspar.spark.sentences import answered_by, in_one_sentence

if TYPE_CHECKING:
    from pyarrow import RecordBatch


def read_task(partition: InputPartition, options: ReadOptions) -> "Iterator[RecordBatch]":
    """The rows of its ranges. Where a batch has nothing to read Spark starts one task all the same, for nothing."""
    if not isinstance(partition, ReadTask):
        return
    from kaspar.spark.fetching import read_range

    with in_one_sentence(), answered_by(options.connection.bootstrap_servers):
        ranges: Sequence[OffsetRange] = partition.ranges
        if any(each.binds_late for each in ranges):
            from kaspar.spark.late_binding import bound_now

            ranges = bound_now(ranges, options)
        for each in ranges:
            if len(each):
                yield from read_range(each, options)
    set_aside_what_is_loaded()
