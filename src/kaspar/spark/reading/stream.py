"""A streaming read, as Spark calls it.

Spark keeps one object of this class in a process on the driver for as long as the query runs, and calls it between
micro-batches. Every task gets another copy, which only reads. So only the first has connections, which are opened on
first use. Errors are not raised before that: if the constructor fails, Spark reports an internal error instead of the
reason.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from kaspar.base.ids import TopicPartition
from kaspar.base.log import get_log
from kaspar.spark.disconnects import exit_quietly_on_disconnect
from kaspar.spark.errors import without_traceback
from kaspar.spark.offsets import LATEST, from_json, to_json
from kaspar.spark.reading.data_loss import not_there, report
from kaspar.spark.reading.options import ReadOptions
from kaspar.spark.reading.planning import Limits, tasks
from kaspar.spark.reading.schema import refuse_other_schema
from kaspar.spark.reading.task import read_task

if TYPE_CHECKING:
    from pyarrow import RecordBatch

    from kaspar.spark.reading.group_commits import GroupCommits
    from kaspar.spark.reading.offset_reader import OffsetReader
    from kaspar.spark.reading.stream_planner import StreamPlanner

log = get_log(__name__)

_SETTLE_S = 5.0
"""How long a query with AvailableNow waits at its end for its group offsets to be committed. No other query waits."""


class KasparStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self.options = options
        self._schema = schema
        self._opened: tuple[OffsetReader, StreamPlanner, GroupCommits | None] | None = None
        self._first: dict[TopicPartition, int] | None = None
        """Where the query starts. Spark asks twice for its first batch, and the latest offset may change meanwhile."""
        self._may_be_first_batch = True

    # --- on the driver ------------------------------------------------------------------------------------------------

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Spark passes this limit back, or ReadAllAvailable in its place; the other limits are in the options."""
        if self.options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self.options.max_offsets_per_trigger)
        if self.options.max_bytes_per_trigger is not None:
            return ReadMaxBytes(self.options.max_bytes_per_trigger)
        if self.options.min_offsets_per_trigger is not None:
            return ReadMinRows(self.options.min_offsets_per_trigger)
        return ReadAllAvailable()

    @without_traceback()
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        _, planner, _ = self._open()
        planner.is_available_now = True

    @without_traceback()
    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        offsets, _, _ = self._open()
        if self._first is None:
            self._first = offsets.retry_if_gone(lambda: self._initial(offsets))
        return to_json(self._first)

    def _initial(self, offsets: "OffsetReader") -> dict[TopicPartition, int]:
        starting = self.options.for_stream()
        there = offsets.complete_assignment().partitions
        start = offsets.resolved(starting, there, side="starting")
        if starting.offsets is None:
            return start
        last = offsets.latest(there)
        for where in sorted(there):
            if start[where] > last[where]:
                sentence = not_there(where, start[where], offsets.earliest([where])[where], last[where])
                report(sentence, fail_on_data_loss=self.options.fail_on_data_loss, otherwise="starts at its end")
        return {where: min(offset, last[where]) for where, offset in start.items()}

    @without_traceback()
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        _, planner, group = self._open()
        begun = from_json(start)
        end = planner.next_end(begun, self._limits(limit))
        if group is not None:
            group.processed(planner.position(), planner.topic_ids)
        if self._may_be_first_batch and begun == self._first and _start_moves(self.options):
            # The checkpoint stores only the ends of batches. This start cannot be determined again, so it has to be the
            # end of a batch: otherwise records that arrive meanwhile are lost if the first batch never completes. So
            # the first batch is empty.
            end = begun
        self._may_be_first_batch = False
        if end is None or end == begun:
            if group is not None and planner.is_available_now:
                group.wait_until_committed(_SETTLE_S)
            return start
        return to_json(end)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        _, planner, _ = self._open()
        return to_json(planner.latest) or None

    @without_traceback()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        from kaspar.spark.reading.cores import parallelism

        offsets, planner, _ = self._open()
        begun, ended = from_json(start), from_json(end)
        if begun == self._first and _start_moves(self.options):
            # The latest offset may by now be after the end of a first batch that an earlier run did not complete.
            begun = {where: min(offset, ended.get(where, offset)) for where, offset in begun.items()}
        ranges = [each for each in planner.ranges(begun, ended) if len(each)]
        sizes = offsets.bytes_per_offset(frozenset(each.topic_partition for each in ranges))
        return list(tasks(ranges, sizes, parallelism(self.options, splits=False)))

    def stop(self) -> None:
        if self._opened is not None:
            offsets, _, group = self._opened
            if group is not None:
                group.close()
            offsets.close()

    def _limits(self, given: ReadLimit) -> Limits:
        options = self.options
        if isinstance(given, ReadAllAvailable):
            return Limits()  # Spark wants all available records, whatever the options say
        return Limits(
            min_offsets=options.min_offsets_per_trigger,
            max_offsets=options.max_offsets_per_trigger,
            max_bytes=options.max_bytes_per_trigger,
            max_delay_ms=options.max_trigger_delay_ms,
        )

    def _open(self) -> "tuple[OffsetReader, StreamPlanner, GroupCommits | None]":
        if self._opened is None:
            from kaspar.spark.reading.group_commits import GroupCommits
            from kaspar.spark.reading.offset_reader import OffsetReader
            from kaspar.spark.reading.stream_planner import StreamPlanner

            exit_quietly_on_disconnect()
            refuse_other_schema(self.options, self._schema)
            self.options.for_stream()
            if self.options.ending is not None:
                log.warning("Option 'endingTimestamp' is ignored in a streaming query, which runs until it is stopped.")
            offsets = OffsetReader(self.options)
            planner = StreamPlanner(self.options, offsets)
            group = None
            if self.options.commit_group_offsets:
                group = GroupCommits(
                    self.options.group_id, self.options.connection.client, metadata=self.options.commit_group_metadata
                )
            self._opened = offsets, planner, group
        return self._opened

    # --- in a task ----------------------------------------------------------------------------------------------------

    def read(self, partition: InputPartition) -> "Iterator[RecordBatch]":
        return read_task(partition, self.options)


def _start_moves(options: ReadOptions) -> bool:
    """Whether the start of the query depends on the time at which it is determined."""
    starting = options.for_stream()
    if starting.timestamp is not None or starting.timestamps is not None:
        return options.latest_if_no_timestamp_matches
    return starting.includes(LATEST)
