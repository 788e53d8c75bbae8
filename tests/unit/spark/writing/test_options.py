"""What a write may be asked for: names and defaults of Spark's sink and Kafka's producer, one sentence for the rest."""

import pickle

import pytest

from kaspar.records import Codec
from kaspar.spark.kafka_settings import InvalidOption
from kaspar.spark.writing.options import ProducerSettings, WriteOptions


def options(**given: str) -> WriteOptions:
    return WriteOptions.of(
        {"kafka.bootstrap.servers": "h:9092", **{name.replace("__", "."): v for name, v in given.items()}}
    )


def producer(**given: str) -> ProducerSettings:
    return options(**{f"kafka__{name}": value for name, value in given.items()}).producer


def test_defaults_are_those_of_kafkas_producer_but_for_larger_batches() -> None:
    settings = producer()
    assert settings.enable_idempotence
    assert (settings.codec, settings.compression_level, settings.transaction_timeout_ms) == (Codec.NONE, None, None)
    assert settings.batch_size == 512 * 1024
    terms = settings.terms
    assert (terms.acks, terms.max_in_flight, terms.retries) == (-1, 5, 2_147_483_647)
    assert (terms.max_request_size, terms.buffer_memory) == (1_048_576, 33_554_432)
    assert (terms.request_timeout_ms, terms.delivery_timeout_ms, terms.max_block_ms) == (30_000, 120_000, 60_000)
    assert (terms.retry_backoff_ms, terms.retry_backoff_max_ms) == (100, 1_000)


def test_names_are_read_in_any_case() -> None:
    parsed = WriteOptions.of({"Kafka.Bootstrap.Servers": "h:1", "TOPIC": "t", "kafka.ACKS": "1"})
    assert (parsed.topic, parsed.producer.terms.acks) == ("t", 1)


def test_blanks_around_the_topic_are_not_part_of_its_name() -> None:
    assert options(topic=" orders ").topic == "orders"


def test_settings_are_taken() -> None:
    settings = producer(
        compression__type="zstd", compression__zstd__level="7", batch__size="1000", request__timeout__ms="5000",
        partitioner__ignore__keys="true", transaction__timeout__ms="9000", linger__ms="100", made__up="x",
    )  # fmt: skip
    assert (settings.codec, settings.compression_level, settings.batch_size) == (Codec.ZSTD, 7, 1000)
    assert (settings.terms.request_timeout_ms, settings.ignore_keys, settings.transaction_timeout_ms) == (
        5000,
        True,
        9000,
    )


def test_a_level_of_another_codec_is_not_looked_at() -> None:
    assert producer(compression__type="lz4", compression__gzip__level="99").compression_level is None


@pytest.mark.parametrize("given", [{"acks": "1"}, {"acks": "0"}, {"retries": "0"}])
def test_idempotence_gives_way_to_settings_that_rule_it_out(given: dict[str, str]) -> None:
    assert not producer(**given).enable_idempotence
    with pytest.raises(InvalidOption, match="idempotent producer"):
        producer(enable__idempotence="true", **given)


def test_more_requests_in_flight_rule_idempotence_out() -> None:
    assert not producer(max__in__flight__requests__per__connection="6").enable_idempotence


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"kafka__key__serializer": "x"}, r"'kafka\.key\.serializer' is not supported"),
        ({"kafka__value__serializer": "x"}, r"'kafka\.value\.serializer' is not supported"),
        ({"kafka__transactional__id": "x"}, r"'kafka\.transactional\.id' is not supported: use guarantee"),
        ({"kafka__sasl__mechanism": "PLAIN"}, "has no effect with kafka.security.protocol = PLAINTEXT"),
        ({"kafka__compression": "zstd"}, "Unknown option 'kafka.compression'. Did you mean 'kafka.compression.type'"),
        ({"kafka__acks": "2"}, r"'kafka\.acks' must be one of all, -1, 0, 1, not '2'"),
        ({"kafka__compression__type": "rar"}, r"must be one of none, gzip, snappy, lz4, zstd, not 'rar'"),
        ({"kafka__compression__type": "gzip", "kafka__compression__gzip__level": "10"}, "must be at most 9"),
        ({"kafka__batch__size": "-1"}, "must be at least 0"),
        ({"kafka__batch__size": "big"}, "must be an integer"),
        ({"kafka__delivery__timeout__ms": "100"}, r"must be at least request\.timeout\.ms, which is 30000"),
        ({"topic": " "}, "'topic' is empty"),
        ({"guarantee": "maybe"}, "at-least-once or exactly-once, not 'maybe'"),
        ({"guarantee": "exactly-once", "kafka__acks": "1"}, "requires an idempotent producer"),
        ({"txnAppId": "a"}, "must be given together"),
        ({"txnVersion": "1"}, "must be given together"),
        ({"txnAppId": "a", "txnVersion": "one"}, "'txnVersion' must be an integer"),
        ({"txnAppId": "a", "txnVersion": "1"}, "require guarantee = exactly-once"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidOption, match=sentence):
        options(**given)


def test_servers_have_to_be_given() -> None:
    with pytest.raises(InvalidOption, match=r"'kafka\.bootstrap\.servers' is required"):
        WriteOptions.of({"topic": "t"})


def test_a_query_and_its_version_are_taken_together() -> None:
    parsed = options(txnAppId="orders", txnVersion="12", guarantee="exactly-once")
    assert (parsed.query, parsed.version, parsed.guarantee) == ("orders", 12, "exactly-once")


def test_options_travel_to_the_tasks() -> None:
    parsed = options(topic="t", kafka__acks="1")
    assert pickle.loads(pickle.dumps(parsed)) == parsed
