"""The test driver: the order in which it processes what waits."""

from kaspar.streams import StreamsBuilder, TopologyTestDriver


def test_of_the_topics_with_waiting_records_the_one_with_the_earliest_is_next() -> None:
    """What "in" leads to goes through an internal topic, and is still earlier than the record of "other"."""
    builder = StreamsBuilder()
    largest = builder.stream("in").group_by_key().reduce(max)
    largest.to_stream().select_key(lambda key, value: value).repartition(name="moved").to("out")
    builder.stream("other").to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver._enqueue("in", (b"a", b"x", 7, None, None))
        driver._enqueue("other", (b"b", b"y", 8, None, None))
        driver._enqueue("in", (b"a", b"z", 9, None, None))
        driver._drain()
        assert [key for topic, (key, *_) in driver.produced if topic == "out"] == [b"x", b"b", b"z"]
