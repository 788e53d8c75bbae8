"""A task that writes at least once, and the producer that its process keeps for the next one."""

import time

import pytest

from kaspar.base.ids import TopicPartition
from kaspar.client.delivery_terms import TopicPartitions
from kaspar.spark.writing import at_least_once
from kaspar.spark.writing.at_least_once import AtLeastOnceTask, RowsWritten
from kaspar.spark.writing.options import WriteOptions


class OpenedProducer:
    """Stands where a producer and its client do."""

    def __init__(self, options: WriteOptions) -> None:
        self.options = options
        self.client = self.producer = self
        self.used_s = time.monotonic()
        self.closed = False
        self.flushed = 0

    def partitions_of(self, topic: str, at_least: int = 1) -> TopicPartitions:
        return TopicPartitions(1, (0,))

    def send(self, batches: list[tuple[TopicPartition, memoryview]]) -> None:
        assert not self.closed

    def flush(self) -> None:
        self.flushed += 1

    def take_end_offsets(self) -> dict[TopicPartition, int]:
        return {TopicPartition("t", 0): 10 * self.flushed}

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[OpenedProducer]:
    made: list[OpenedProducer] = []

    def open_one(options: WriteOptions) -> OpenedProducer:
        made.append(OpenedProducer(options))
        return made[-1]

    monkeypatch.setattr(at_least_once._Kept, "opened", open_one)
    monkeypatch.setattr(at_least_once, "_kept", [])
    return made


def options(servers: str = "h:1") -> WriteOptions:
    return WriteOptions.of({"kafka.bootstrap.servers": servers, "topic": "t"})


def run_task(options: WriteOptions) -> AtLeastOnceTask:
    task = AtLeastOnceTask(options)
    task.partitions_of("t")
    task.send([(TopicPartition("t", 0), memoryview(b""))])
    assert task.finish(3) == RowsWritten(3)
    return task


def test_a_task_returns_when_all_is_stored_and_the_next_one_goes_on_with_its_producer(
    opened: list[OpenedProducer],
) -> None:
    for _ in range(3):
        run_task(options())
    assert [(one.flushed, one.closed) for one in opened] == [(3, False)]


def test_a_task_without_rows_opens_nothing(opened: list[OpenedProducer]) -> None:
    task = AtLeastOnceTask(options())
    task.send([])
    assert task.finish(0) == RowsWritten(0)
    assert task.end_offsets == {}
    assert opened == []


def test_a_task_knows_where_its_records_end(opened: list[OpenedProducer]) -> None:
    assert [run_task(options()).end_offsets for _ in range(2)] == [
        {TopicPartition("t", 0): 10},
        {TopicPartition("t", 0): 20},
    ]


def test_a_producer_of_other_options_is_closed(opened: list[OpenedProducer]) -> None:
    run_task(options())
    run_task(options("other:1"))
    assert [one.closed for one in opened] == [True, False]


def test_a_producer_that_failed_is_not_used_again(opened: list[OpenedProducer]) -> None:
    task = AtLeastOnceTask(options())
    task.partitions_of("t")
    task.abandon()
    run_task(options())
    assert [one.closed for one in opened] == [True, False]


def test_a_producer_that_was_idle_for_long_is_closed(opened: list[OpenedProducer]) -> None:
    run_task(options())
    opened[0].used_s -= 601
    run_task(options())
    assert [one.closed for one in opened] == [True, False]
