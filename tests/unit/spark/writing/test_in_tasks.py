"""A program of the caller in front of a task's writer: what it is given, what is written, what comes back."""

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Row
from pyspark.sql.datasource import WriterCommitMessage

from kaspar.base.ids import TopicPartition
from kaspar.spark.writing import in_tasks
from kaspar.spark.writing.at_least_once import RowsWritten
from kaspar.spark.writing.in_tasks import TaskReport, run_at_least_once, write_in_tasks
from kaspar.spark.writing.options import WriteOptions
from tests.unit.spark.writing.test_encoding import Written

SERVERS = {"kafka.bootstrap.servers": "h:1"}
A = TopicPartition("a", 0)


class Rows:
    """Stands where a DataFrame does: each partition is a task, run one after the other in this process."""

    def __init__(self, *partitions: Sequence[str]) -> None:
        self.partitions = partitions

    def mapInArrow(self, run: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], schema: str) -> Any:  # noqa: N802
        names = [column.split()[0] for column in schema.split(", ")]
        self.reports = [
            Row(*names)(*(row[name] for name in names))
            for values in self.partitions
            for report in run(pa.record_batch({"topic": ["a"], "value": [value]}) for value in values)
            for row in report.to_pylist()
        ]
        return self

    def collect(self) -> list[Row]:
        return self.reports


class Doubling:
    """Writes every row twice, and reports what it has seen."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.seen = 0
        self.failure = failure

    def process(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            self.seen += batch.num_rows
            yield batch
            yield batch

    def finished(self, message: WriterCommitMessage, end_offsets: Mapping[TopicPartition, int]) -> bytes:
        if self.failure is not None:
            raise self.failure
        return pickle.dumps((self.seen, message, end_offsets))


def options() -> WriteOptions:
    return WriteOptions.of(SERVERS)


def test_rows_of_all_tasks_are_written_and_each_task_reports() -> None:
    written = Written()
    reports = write_in_tasks(Rows(["1", "2"], ["3"], []), options(), written)  # type: ignore[arg-type]
    assert reports == [TaskReport(RowsWritten(count), b"") for count in (2, 1, 0)]
    assert written.values() == {"a-0": [b"1", b"2", b"3"]}


def test_what_a_program_yields_is_written_and_what_it_returns_comes_back() -> None:
    written = Written()
    (report,) = write_in_tasks(Rows(["1", "2"]), options(), written, Doubling())  # type: ignore[arg-type]
    assert written.values() == {"a-0": [b"1", b"1", b"2", b"2"]}
    assert report.message == RowsWritten(4)
    assert pickle.loads(report.result) == (2, RowsWritten(4), {A: 4})


def test_a_program_runs_in_tasks_without_rows_too() -> None:
    (report,) = write_in_tasks(Rows([]), options(), Written(), Doubling())  # type: ignore[arg-type]
    assert pickle.loads(report.result) == (0, RowsWritten(0), {})


@pytest.mark.parametrize("failure", [OSError("disk full"), ValueError("no")], ids=["an OSError", "another"])
def test_an_error_after_the_last_row_is_the_programs_own(failure: Exception) -> None:
    written = Written()
    with pytest.raises(type(failure), match=f"^{failure}$"):
        write_in_tasks(Rows(["1"]), options(), written, Doubling(failure))  # type: ignore[arg-type]
    assert written.end == "finished"


def test_at_least_once_needs_no_block(monkeypatch: pytest.MonkeyPatch) -> None:
    written = Written()
    given: list[WriteOptions] = []

    def guarantee(options: WriteOptions) -> Written:
        given.append(options)
        return written

    monkeypatch.setattr(in_tasks, "AtLeastOnce", guarantee)
    results = run_at_least_once(Rows(["1"], ["2"]), Doubling(), topic="b", options=SERVERS)  # type: ignore[arg-type]
    assert written.values() == {"b-0": [b"1", b"1", b"2", b"2"]}
    assert [pickle.loads(result)[1] for result in results] == [RowsWritten(2), RowsWritten(2)]
    assert [(each.topic, each.guarantee) for each in given] == [("b", "at-least-once")]
