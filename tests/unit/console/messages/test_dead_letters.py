"""Dead letters of Spark's source, of Connect and of streams: their origins, and the records that they were."""

import pytest

from kaspar.base.ids import TopicPartition
from kaspar.console.messages.dead_letters import origin_of, original_record
from kaspar.records.record import Header, Record
from kaspar.spark.formats.dead_letters import DeadLetter

ORIGINAL = Record(5_000, b"k\xff", b"\x00\x01", (("trace", b"1"), ("trace", None)), 17)
STREAMS: tuple[Header, ...] = (
    ("own", b"x"),
    ("__streams.errors.exception", b"ValueError"),
    ("__streams.errors.message", b"no number"),
    ("__streams.errors.stacktrace", b"Traceback"),
    ("__streams.errors.topic", b"orders"),
    ("__streams.errors.partition", b"2"),
    ("__streams.errors.offset", b"9"),
)


def test_a_letter_of_the_spark_source_is_its_record_again() -> None:
    letter = DeadLetter(TopicPartition("orders", 3), ORIGINAL, "value", "it is no JSON").to_record(9_000)
    origin = origin_of(letter.headers)
    assert origin is not None
    assert (origin.topic, origin.partition, origin.offset, origin.timestamp) == ("orders", 3, 17, 5_000)
    assert (origin.reason, origin.stage) == ("it is no JSON", "VALUE_CONVERTER")
    assert original_record(letter, now_ms=1, keep_timestamp=True) == ORIGINAL._replace(offset=-1)
    assert original_record(letter, now_ms=1, keep_timestamp=False) == ORIGINAL._replace(offset=-1, timestamp=1)


def test_a_letter_of_streams_has_its_stack_trace_but_not_the_time() -> None:
    letter = Record(9_000, b"k", b"v", STREAMS)
    origin = origin_of(letter.headers)
    assert origin is not None
    assert (origin.topic, origin.partition, origin.offset, origin.timestamp) == ("orders", 2, 9, None)
    assert (origin.reason, origin.stage, origin.details) == ("no number", "ValueError", "Traceback")
    assert original_record(letter, now_ms=1, keep_timestamp=True) == Record(1, b"k", b"v", (("own", b"x"),))


def test_other_records_are_no_letters() -> None:
    assert origin_of(()) is None
    assert origin_of((("__connect.errors.topic", None),)) is None
    assert origin_of((("__connect.errors.offset", b"1"),)) is None


@pytest.mark.parametrize("text", [b"-1; DROP", b"9223372036854775808", "\u0663".encode()])
def test_numbers_that_are_none_are_not_told(text: bytes) -> None:
    headers: tuple[Header, ...] = (
        ("__connect.errors.topic", b"t"),
        ("__connect.errors.offset", text),
        ("__kaspar.errors.timestamp", text),
    )
    origin = origin_of(headers)
    assert origin is not None
    assert origin.offset is None
    assert original_record(Record(9, b"k", b"v", headers), now_ms=1, keep_timestamp=True).timestamp == 1
