"""A batch read, as Spark calls it. The offsets of each partition are planned once per DataFrame.

Earliest and latest offsets are looked up again by each task (late_binding.py).
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from kaspar.base.ids import TopicPartition
from kaspar.spark.errors import without_traceback
from kaspar.spark.offsets import EARLIEST, LATEST
from kaspar.spark.reading.data_loss import not_there, removed, report, start_of_log
from kaspar.spark.reading.options import InvalidOption, ReadOptions
from kaspar.spark.reading.planning import OffsetRange, tasks
from kaspar.spark.reading.schema import refuse_other_schema
from kaspar.spark.reading.task import read_task

if TYPE_CHECKING:
    from pyarrow import RecordBatch

    from kaspar.spark.reading.offset_reader import OffsetReader


class KasparBatchReader(DataSourceReader):
    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        refuse_other_schema(options, schema)
        self.options = options
        self._starting, self._ending = options.for_batch()

    @without_traceback()
    def partitions(self) -> list[InputPartition]:
        from kaspar.spark.reading.cores import parallelism
        from kaspar.spark.reading.offset_reader import OffsetReader

        offsets = OffsetReader(self.options)
        try:
            ranges = offsets.retry_if_gone(lambda: self._ranges(offsets))
            sizes = offsets.bytes_per_offset(frozenset(each.topic_partition for each in ranges if len(each)))
        finally:
            offsets.close()
        return list(tasks(ranges, sizes, parallelism(self.options, splits=True)))

    def _ranges(self, offsets: "OffsetReader") -> list[OffsetRange]:
        there = offsets.complete_assignment()
        starts = offsets.resolved(self._starting, there.partitions, side="starting")
        ends = offsets.resolved(self._ending, there.partitions, side="ending")
        first, last = offsets.earliest(there.partitions), offsets.latest(there.partitions)
        ranges = []
        for where in sorted(there.partitions):
            start, end = starts[where], ends[where]
            if start < first[where]:
                start = self._begin_after_loss(offsets, where, start, first[where])
            for asked in (start, end):
                if asked > last[where]:
                    sentence = not_there(where, asked, first[where], last[where])
                    self._report(sentence, "reads the records that exist")
            end = min(end, last[where])
            if end < start <= last[where]:
                raise InvalidOption(f"The starting offset {start} of {where} is greater than its ending offset {end}.")
            ranges.append(
                OffsetRange(
                    *where,
                    start,
                    end,
                    there.topic_ids[where.topic],
                    from_earliest=self._starting.is_at(where, EARLIEST),
                    to_latest=self._ending.is_at(where, LATEST),
                )
            )
        return ranges

    def _begin_after_loss(self, offsets: "OffsetReader", where: TopicPartition, asked: int, log_start: int) -> int:
        start = offsets.request(lambda client: start_of_log(client, where, log_start))
        self._report(removed(where, asked, start), f"starts at offset {log_start} of {where}")
        return log_start

    def _report(self, sentence: str, otherwise: str) -> None:
        report(sentence, fail_on_data_loss=self.options.fail_on_data_loss, otherwise=otherwise)

    def read(self, partition: InputPartition) -> "Iterator[RecordBatch]":
        return read_task(partition, self.options)
