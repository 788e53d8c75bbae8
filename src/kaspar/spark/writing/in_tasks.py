"""Writes the rows of a DataFrame in the tasks of the caller's own job, and returns the tasks' messages to the caller.

A program of the caller may run in front of the writer. Both are one Python function in a task: what the program yields
is encoded and sent at once, and does not pass through the JVM.
"""

import pickle
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pyspark.sql.datasource import WriterCommitMessage

from kaspar.spark.writing.at_least_once import AtLeastOnce
from kaspar.spark.writing.guarantee import Guarantee
from kaspar.spark.writing.options import AT_LEAST_ONCE, WriteOptions

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from kaspar.base.ids import TopicPartition

_REPORT = "message binary, result binary"


class TaskProgram(Protocol):
    """Runs in a task in front of its writer. It is pickled to the tasks, so each attempt of a task has its own copy.

    Errors of the program fail the task, and reach the driver unchanged.
    """

    def process(self, batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        """The rows to write, made from the rows of the task. They have the columns of the sink (writing/schema.py)."""

    def finished(self, message: WriterCommitMessage, end_offsets: "Mapping[TopicPartition, int]") -> bytes:
        """Called when everything is stored; with exactly-once, nothing is published yet. The result reaches the driver.

        `end_offsets` are those of TaskWriter. If this raises, the attempt counts as lost: with exactly-once, what it
        wrote is aborted when the batch is decided; with at-least-once, it stays.
        """


class TaskReport(NamedTuple):
    """A task's report to the driver."""

    message: WriterCommitMessage
    result: bytes
    """The result of its program; empty without one."""


def write_in_tasks(
    rows: "DataFrame", options: WriteOptions, guarantee: Guarantee, program: TaskProgram | None = None
) -> list[TaskReport]:
    """Write the rows, or the rows that the program yields. Returns the reports in the order of the partitions of
    `rows`; the caller has to handle their messages."""
    reports = rows.mapInArrow(_task(options, guarantee, program), _REPORT).collect()
    return [TaskReport(pickle.loads(each.message), bytes(each.result)) for each in reports]


def run_at_least_once(
    rows: "DataFrame", program: TaskProgram, *, topic: str | None = None, options: Mapping[str, str]
) -> list[bytes]:
    """Run the program in the tasks of `rows`, and write what it yields. Returns what it returned in each task, in the
    order of the partitions of `rows`. `options` are the write options of the data source."""
    given = dict(options) if topic is None else {**options, "topic": topic}
    parsed = WriteOptions.of({**given, "guarantee": AT_LEAST_ONCE})
    return [report.result for report in write_in_tasks(rows, parsed, AtLeastOnce(parsed), program)]


def _task(
    options: WriteOptions, guarantee: Guarantee, program: TaskProgram | None
) -> "Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]":
    def run(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa

        from kaspar.spark.errors import without_traceback
        from kaspar.spark.writing.encoding import write_rows

        with without_traceback():
            if program is None:
                message, result = write_rows(batches, options, guarantee).message, b""
            else:
                written = write_rows(program.process(batches), options, guarantee)
                message, result = written.message, program.finished(*written)
        columns = [pa.array([each], pa.binary()) for each in (pickle.dumps(message), result)]
        yield pa.record_batch(columns, names=["message", "result"])

    return run
