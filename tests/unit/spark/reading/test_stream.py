"""What a stream does when Spark asks where its next micro-batch ends: with stand-ins for its planner and its group."""

import pytest
from pyspark.sql.types import StringType, StructField, StructType

from kaspar.base.ids import TopicPartition
from kaspar.spark.reading.cores import CORES
from kaspar.spark.reading.options import InvalidOption, ReadOptions
from kaspar.spark.reading.planning import OffsetRange
from kaspar.spark.reading.schema import schema_of
from kaspar.spark.reading.stream import KasparStreamReader
from kaspar.spark.source import KasparDataSource

T0 = TopicPartition("t", 0)


class Planner:
    """Of a stream at rest."""

    def __init__(self, *, is_available_now: bool) -> None:
        self.is_available_now = is_available_now
        self.topic_ids: dict[str, object] = {}

    def next_end(self, start: dict[TopicPartition, int], limits: object) -> dict[TopicPartition, int]:
        return start

    def position(self) -> dict[TopicPartition, int]:
        return {T0: 5}


class Backlog(Planner):
    """Of a stream that has a gigabyte to read, all in one partition."""

    def __init__(self) -> None:
        super().__init__(is_available_now=False)

    def ranges(self, start: object, end: object) -> list[OffsetRange]:
        return [OffsetRange("t", 0, 0, 1_000_000)]

    def bytes_per_offset(self, partitions: frozenset[TopicPartition]) -> dict[TopicPartition, float]:
        return dict.fromkeys(partitions, 1000.0)


class Group:
    def __init__(self) -> None:
        self.processed_up_to: list[dict[TopicPartition, int]] = []
        self.waits = 0

    def processed(self, offsets: dict[TopicPartition, int], topic_ids: object) -> None:
        self.processed_up_to.append(offsets)

    def wait_until_committed(self, timeout_s: float) -> bool:
        self.waits += 1
        return False


@pytest.mark.parametrize("is_available_now", [True, False])
def test_only_a_query_that_ends_waits_for_the_commit_to_its_group(is_available_now: bool) -> None:
    options = ReadOptions.of({"kafka.bootstrap.servers": "a:1", "subscribe": "t", "startingOffsets": "earliest"})
    stream = KasparStreamReader(options, schema_of(options))
    group = Group()
    stream._opened = object(), Planner(is_available_now=is_available_now), group  # type: ignore[assignment]
    start = {"t": {"0": 5}}
    assert stream.latestOffset(start, stream.getDefaultReadLimit()) == start
    assert group.processed_up_to == [{T0: 5}]
    assert group.waits == is_available_now


@pytest.mark.parametrize(
    ("asked_for", "tasks"), [({}, 1), ({"splitPartitions": "true"}, 4), ({"minPartitions": "3"}, 3)]
)
def test_a_large_partition_stays_in_one_task_unless_several_are_asked_for(
    asked_for: dict[str, str], tasks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its records would be written in another order otherwise, whenever a backlog is large."""
    monkeypatch.setenv(CORES, "4")
    options = ReadOptions.of({"kafka.bootstrap.servers": "a:1", "subscribe": "t", **asked_for})
    stream = KasparStreamReader(options, schema_of(options))
    stream._opened = Backlog(), Backlog(), None  # type: ignore[assignment]
    assert len(stream.partitions({"t": {"0": 0}}, {"t": {"0": 1_000_000}})) == tasks


@pytest.mark.parametrize("call", ["initialOffset", "prepareForTriggerAvailableNow"])
def test_what_a_stream_cannot_do_is_refused_when_it_is_first_used(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not when it is made: Spark's runner would then fail itself, without a reason."""
    monkeypatch.setenv("SPARK_HIDE_TRACEBACK", "")
    source = KasparDataSource({"kafka.bootstrap.servers": "a:1", "subscribe": "t", "endingOffsets": "latest"})
    with pytest.raises(InvalidOption, match="not valid in a streaming query"):
        getattr(source.streamReader(source.schema()), call)()
    other = StructType([StructField("price", StringType())])
    with pytest.raises(InvalidOption, match="The columns of a topic are fixed"):
        getattr(source.streamReader(other), call)()
