"""Where a stream that starts at the latest offset begins its first batch, which Spark asks for more than once."""

from kaspar.spark.reading.options import ReadOptions
from kaspar.spark.reading.planning import ReadTask
from kaspar.spark.reading.schema import schema_of
from kaspar.spark.reading.stream import KasparStreamReader
from tests.peers.kaspar import KasparProcess
from tests.spark.topics import Topics


def reader(broker: KasparProcess, topic: str, **given: str) -> KasparStreamReader:
    options = ReadOptions.of({"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, **given})
    return KasparStreamReader(options, schema_of(options))


def test_records_that_come_between_two_questions_do_not_move_the_start(broker: KasparProcess, topics: Topics) -> None:
    name = topics.create()
    topics.produce(name, [b"before"])
    stream = reader(broker, name)
    start = stream.initialOffset()
    topics.produce(name, [b"meanwhile"])
    assert stream.latestOffset(start, stream.getDefaultReadLimit()) == start == {name: {"0": 1}}
    assert stream.initialOffset() == start
    assert stream.partitions(start, start) == []
    end = stream.latestOffset(start, stream.getDefaultReadLimit())
    (task,) = stream.partitions(start, end)
    assert isinstance(task, ReadTask)
    assert [(each.start, each.end) for each in task.ranges] == [(1, 2)]
    stream.stop()


def test_records_that_come_before_the_first_batch_is_done_are_read_by_the_next_run(
    broker: KasparProcess, topics: Topics
) -> None:
    """The end of its first batch is all that a checkpoint has then: it is where the query started."""
    name = topics.create()
    stream = reader(broker, name)
    start = stream.initialOffset()
    topics.produce(name, [b"meanwhile"])
    first_end = stream.latestOffset(start, stream.getDefaultReadLimit())
    stream.stop()

    again = reader(broker, name)
    assert again.partitions(again.initialOffset(), first_end) == []
    end = again.latestOffset(first_end, again.getDefaultReadLimit())
    (task,) = again.partitions(first_end, end)
    assert isinstance(task, ReadTask)
    assert [(each.start, each.end) for each in task.ranges] == [(0, 1)]
    again.stop()


def test_a_stream_that_starts_at_the_earliest_begins_at_once(broker: KasparProcess, topics: Topics) -> None:
    name = topics.create()
    topics.produce(name, [b"one"])
    stream = reader(broker, name, startingOffsets="earliest")
    start = stream.initialOffset()
    assert stream.latestOffset(start, stream.getDefaultReadLimit()) == {name: {"0": 1}}
    stream.stop()


def test_a_first_batch_of_an_earlier_run_is_no_loss(broker: KasparProcess, topics: Topics) -> None:
    """That run began at what was the latest offset then, which nobody knows any more."""
    name = topics.create()
    topics.produce(name, [b"seen"])
    end_of_that_batch = {name: {"0": 1}}
    topics.produce(name, [b"later", b"and later"])
    stream = reader(broker, name)
    assert stream.partitions(stream.initialOffset(), end_of_that_batch) == []
    later = stream.latestOffset(end_of_that_batch, stream.getDefaultReadLimit())
    (task,) = stream.partitions(end_of_that_batch, later)
    assert isinstance(task, ReadTask)
    assert [(each.start, each.end) for each in task.ranges] == [(1, 3)]
    stream.stop()
