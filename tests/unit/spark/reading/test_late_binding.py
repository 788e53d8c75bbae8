"""A task of a batch reads to where its partitions end then: Spark runs a DataFrame's tasks as often as it is used."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.cluster import EARLIEST_TIMESTAMP
from kaspar.client.offsets import ListedOffset
from kaspar.protocol.isolation_level import READ_COMMITTED
from kaspar.spark.kafka_settings import ConnectionSettings
from kaspar.spark.reading import late_binding
from kaspar.spark.reading.late_binding import bound_now
from kaspar.spark.reading.options import ReadOptions
from kaspar.spark.reading.planning import OffsetRange, Parallelism, tasks

Bound = Callable[..., list[tuple[int, int]]]
OPTIONS = ReadOptions.of(
    {"kafka.bootstrap.servers": "a:1", "subscribe": "t", "kafka.isolation.level": "read_committed"}
)


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> Bound:
    """Where the ranges start and end, on a cluster with these logs: (first offset, end) by partition."""

    def starts_and_ends(*ranges: OffsetRange, **logs: tuple[int, int]) -> list[tuple[int, int]]:
        def list_offsets(
            client: None, timestamps: Mapping[TopicPartition, int], *, isolation_level: int = 0
        ) -> dict[TopicPartition, ListedOffset]:
            found = {}
            for where, timestamp in timestamps.items():
                if f"t{where.partition}" not in logs:
                    raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "gone")
                first, end = logs[f"t{where.partition}"]
                assert timestamp == EARLIEST_TIMESTAMP or isolation_level == READ_COMMITTED
                found[where] = ListedOffset(first if timestamp == EARLIEST_TIMESTAMP else end)
            return found

        monkeypatch.setattr(ConnectionSettings, "client", lambda self: nullcontext())
        monkeypatch.setattr(late_binding, "list_offsets", list_offsets)
        return [(each.start, each.end) for each in bound_now(ranges, OPTIONS)]

    return starts_and_ends


def test_a_range_goes_on_to_the_latest_offset_and_begins_at_the_earliest(bound: Bound) -> None:
    whole = OffsetRange("t", 0, 0, 5, from_earliest=True, to_latest=True)
    assert bound(whole, t0=(0, 9)) == [(0, 9)]
    assert bound(whole, t0=(7, 9)) == [(7, 9)]


def test_offsets_that_the_options_name_stay(bound: Bound) -> None:
    assert bound(OffsetRange("t", 0, 2, 5), t0=(3, 9)) == [(2, 5)]
    assert bound(OffsetRange("t", 0, 2, 5, to_latest=True), t0=(3, 9)) == [(2, 9)], "what is gone is a loss"
    assert bound(OffsetRange("t", 0, 2, 5, from_earliest=True), t0=(3, 9)) == [(3, 5)]


def test_the_last_part_of_a_partition_goes_on_and_parts_whose_records_were_removed_are_empty(bound: Bound) -> None:
    whole = OffsetRange("t", 0, 0, 90, from_earliest=True, to_latest=True)
    planned = tasks([whole], {}, Parallelism(cores=1, min_partitions=3))
    parts = [each for task in planned for each in task.ranges]
    assert bound(*parts, t0=(0, 100)) == [(0, 30), (30, 60), (60, 100)]
    left = bound(*parts, t0=(40, 100))
    assert [(start, end) for start, end in left if start < end] == [(40, 60), (60, 100)]


def test_an_empty_partition_that_may_get_something_goes_with_a_task() -> None:
    full, idle, ended = (
        OffsetRange("t", 0, 0, 5, to_latest=True),
        OffsetRange("t", 1, 3, 3, to_latest=True),
        OffsetRange("t", 2, 3, 3),
    )
    assert [task.ranges for task in tasks([full, idle, ended], {}, Parallelism(cores=2))] == [(full, idle)]
    assert [task.ranges for task in tasks([idle, ended], {}, Parallelism(cores=2))] == [(idle,)]


def test_missing_records_are_left_to_the_reader(bound: Bound) -> None:
    assert bound(OffsetRange("t", 0, 0, 5, to_latest=True)) == [(0, 5)]
