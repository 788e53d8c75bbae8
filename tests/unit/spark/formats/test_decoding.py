"""A task's batches: decoded, stopped at the first bad record, or with the bad ones put aside."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pytest

from kaspar.base.ids import TopicPartition
from kaspar.records.record import Record
from kaspar.spark.formats import Decoder, Field, FormatOptions, decoder_of
from kaspar.spark.formats.dead_letters import DeadLetter
from kaspar.spark.formats.decoding import UndecodableRecord, decode_batch, decoded, raw_columns
from kaspar.spark.kafka_settings import ConnectionSettings

BYTES, STRING = FormatOptions(), FormatOptions("string")
JSON = FormatOptions("json", "id int")


@dataclass(frozen=True)
class Options:
    key_format: FormatOptions = BYTES
    value_format: FormatOptions = BYTES
    dead_letter_topic: str | None = None
    connection: ConnectionSettings = ConnectionSettings("nowhere:1")  # noqa: RUF009 - it is frozen


class Kept:
    """Dead letters in memory."""

    topic = "dead"

    def __init__(self) -> None:
        self.letters: list[DeadLetter] = []

    def put(self, letters: Sequence[DeadLetter]) -> None:
        self.letters += letters


HEADERS = pa.list_(pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())])))


def raw(keys: list[bytes | None], values: list[bytes | None], topic: str = "orders") -> pa.RecordBatch:
    count = len(values)
    return pa.RecordBatch.from_pydict(
        {
            "key": pa.array(keys, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "topic": pa.array([topic] * count),
            "partition": pa.array([3] * count, pa.int32()),
            "offset": pa.array(range(10, 10 + count), pa.int64()),
            "timestamp": pa.array([1_500_000] * count, pa.timestamp("us", "UTC")),
            "headers": pa.array([[{"key": "h", "value": b"\xff"}], None][:count] + [None] * (count - 2), HEADERS),
        }
    )


def test_without_formats_batches_are_passed_on_untouched() -> None:
    batch = raw([None], [b"x"])
    assert raw_columns(Options(), ["value"]) == ("value",)
    assert next(decoded([batch], Options(), ["value"])) is batch


def test_what_a_complaint_or_a_dead_letter_needs_is_read_behind_what_is_wanted() -> None:
    assert raw_columns(Options(value_format=STRING), ["value"]) == ("value", "topic", "partition", "offset")
    assert raw_columns(Options(key_format=STRING), ["value"]) == ("value",)
    whole = raw_columns(Options(value_format=STRING, dead_letter_topic="dead"), ["offset", "value"])
    assert whole == ("offset", "value", "topic", "partition", "key", "timestamp", "headers")


def test_the_wanted_columns_come_decoded_and_in_order() -> None:
    options = Options(key_format=STRING, value_format=JSON)
    (batch,) = decoded([raw([b"k", None], [b'{"id": 1}', None])], options, ["offset", "value", "key"])
    assert batch.schema.names == ["offset", "value", "key"]
    assert batch.to_pylist() == [
        {"offset": 10, "value": {"id": 1}, "key": "k"},
        {"offset": 11, "value": None, "key": None},
    ]


def test_a_bad_record_stops_the_query_with_its_place_and_reason() -> None:
    batches = decoded([raw([None] * 2, [b"{}", b'{"id": "x"}'])], Options(value_format=JSON), ["value"])
    with pytest.raises(UndecodableRecord) as stopped:
        next(batches)
    assert str(stopped.value).startswith(
        'The value of the record at offset 11 of orders-3 cannot be decoded: id is "x", which is not a whole number.'
    )


def test_bad_records_are_put_aside_whole_and_left_out() -> None:
    options = Options(key_format=STRING, value_format=JSON)
    decoders: dict[Field, Decoder] = {"key": decoder_of(options, "key"), "value": decoder_of(options, "value")}
    batch = raw([b"\xff", b"k", b"\xff", b"ok"], [b"{}", b"{", b"[]", b'{"id": 4}'])
    kept = Kept()
    good = decode_batch(batch, decoders, ["key", "value", "offset"], kept)
    assert good.to_pylist() == [{"key": "ok", "value": {"id": 4}, "offset": 13}]
    assert [(letter.source, letter.record.offset, letter.field) for letter in kept.letters] == [
        (TopicPartition("orders", 3), 10, "key"),
        (TopicPartition("orders", 3), 11, "value"),
        (TopicPartition("orders", 3), 12, "key"),
    ]
    assert kept.letters[0].record == Record(1500, b"\xff", b"{}", (("h", b"\xff"),), 10)


def test_a_dead_letter_has_its_own_time_and_the_headers_of_kafka_connect_behind_the_record_s() -> None:
    source = TopicPartition("orders", 3)
    letter = DeadLetter(source, Record(1500, b"k", b"v", (("h", None),), 10), "value", "it is not JSON")
    assert letter.to_record(now_ms=7000) == Record(
        7000,
        b"k",
        b"v",
        (
            ("h", None),
            ("__connect.errors.topic", b"orders"),
            ("__connect.errors.partition", b"3"),
            ("__connect.errors.offset", b"10"),
            ("__connect.errors.stage", b"VALUE_CONVERTER"),
            ("__connect.errors.exception.message", b"it is not JSON"),
            ("__kaspar.errors.timestamp", b"1500"),
        ),
        -1,
    )


def test_a_bad_record_of_the_dead_letter_topic_itself_stops_the_query() -> None:
    decoders: dict[Field, Decoder] = {"value": decoder_of(Options(value_format=JSON), "value")}
    with pytest.raises(UndecodableRecord, match=r"offset 10 of dead-3 .* Set the option 'deadLetterTopic'"):
        decode_batch(raw([None], [b"{"], topic="dead"), decoders, ["value"], Kept())


def test_a_record_s_time_may_be_beyond_what_python_s_dates_reach() -> None:
    batch = raw([None], [b"{"])
    far = pa.array([2**62], pa.timestamp("us", "UTC"))
    batch = batch.set_column(batch.schema.get_field_index("timestamp"), "timestamp", far)
    kept = Kept()
    decode_batch(batch, {"value": decoder_of(Options(value_format=JSON), "value")}, ["value"], kept)
    assert kept.letters[0].record.timestamp == 2**62 // 1000
