"""Settings of librdkafka from properties of Java's clients: each is one that librdkafka accepts, and means the same."""

import itertools

import pytest
from confluent_kafka import Consumer, Producer

from kaspar.base.errors import InvalidSetting
from kaspar.tools.librdkafka import Translated, consumer_settings, producer_settings

NO_BROKER = {"bootstrap.servers": "127.0.0.1:1"}
QUIET = {"log_level": 0}

PRODUCER_PROPERTIES = {
    "acks": ("all", "-1", "0", "1"),
    "batch.size": ("0", "16384", "2147483647"),
    "buffer.memory": ("0", "33554432", "9223372036854775807"),
    "client.dns.lookup": ("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
    "client.id": ("", "someone"),
    "compression.type": ("none", "gzip", "snappy", "lz4", "zstd"),
    "compression.zstd.level": ("-131072", "3", "22"),
    "delivery.timeout.ms": ("30005", "2147483647"),
    "enable.idempotence": ("true", "false"),
    "enable.metrics.push": ("true", "false"),
    "linger.ms": ("0", "5", "900001"),
    "max.block.ms": ("0",),
    "max.in.flight.requests.per.connection": ("1", "5", "6", "2147483647"),
    "max.request.size": ("0", "1048576", "2147483647"),
    "metadata.max.age.ms": ("0", "300000", "9223372036854775807"),
    "metadata.recovery.strategy": ("rebootstrap", "NONE"),
    "partitioner.class": ("org.apache.kafka.clients.producer.RoundRobinPartitioner",),
    "partitioner.ignore.keys": ("true",),
    "receive.buffer.bytes": ("-1", "32768"),
    "reconnect.backoff.ms": ("0", "20000"),
    "reconnect.backoff.max.ms": ("0", "50"),
    "request.timeout.ms": ("0", "30000", "2147483647"),
    "retries": ("0", "3", "2147483647"),
    "retry.backoff.ms": ("0", "100", "9223372036854775807"),
    "retry.backoff.max.ms": ("0", "50"),
    "send.buffer.bytes": ("-1", "131072"),
    "socket.connection.setup.timeout.ms": ("1", "10000"),
    "transactional.id": ("one",),
}
CONSUMER_PROPERTIES = {
    "allow.auto.create.topics": ("true", "false"),
    "auto.commit.interval.ms": ("0", "5000"),
    "auto.offset.reset": ("latest", "earliest", "none"),
    "check.crcs": ("true", "false"),
    "client.rack": ("", "east"),
    "enable.auto.commit": ("true", "false"),
    "fetch.max.bytes": ("0", "52428800", "2147483647"),
    "fetch.max.wait.ms": ("0", "500", "400000"),
    "fetch.min.bytes": ("0", "1"),
    "group.instance.id": ("first",),
    "group.protocol": ("classic", "CONSUMER"),
    "heartbeat.interval.ms": ("3000",),
    "isolation.level": ("read_committed", "read_uncommitted"),
    "max.partition.fetch.bytes": ("0", "1048576"),
    "max.poll.interval.ms": ("1", "300000", "2147483647"),
    "max.poll.records": ("500",),
    "partition.assignment.strategy": (
        "org.apache.kafka.clients.consumer.RoundRobinAssignor",
        "org.apache.kafka.clients.consumer.RangeAssignor,org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
        "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
    ),
    "request.timeout.ms": ("0", "30000", "2147483647"),
    "session.timeout.ms": ("1", "45000", "2147483647"),
}


def each_value(table: dict[str, tuple[str, ...]]) -> list[tuple[str, str]]:
    return list(itertools.chain.from_iterable(((name, value) for value in values) for name, values in table.items()))


@pytest.mark.parametrize(("name", "value"), each_value(PRODUCER_PROPERTIES))
def test_librdkafka_accepts_what_a_producer_of_java_accepts(name: str, value: str) -> None:
    translated = producer_settings({**NO_BROKER, name: value})
    Producer({**translated.settings, **QUIET})


@pytest.mark.parametrize(("name", "value"), each_value(CONSUMER_PROPERTIES))
def test_librdkafka_accepts_what_a_consumer_of_java_accepts(name: str, value: str) -> None:
    translated = consumer_settings({**NO_BROKER, "group.id": "group", name: value})
    Consumer({**translated.settings, **QUIET}).close()


def test_defaults_are_those_of_java_where_they_change_what_a_client_does() -> None:
    producer, consumer = producer_settings(NO_BROKER).settings, consumer_settings(NO_BROKER).settings
    assert (producer["partitioner"], producer["enable.idempotence"]) == ("murmur2_random", True)
    assert producer["delivery.timeout.ms"] == 120_000
    assert (consumer["isolation.level"], consumer["check.crcs"]) == ("read_uncommitted", True)
    assert (consumer["allow.auto.create.topics"], consumer["partition.assignment.strategy"]) == (True, "range")


@pytest.mark.parametrize(
    ("name", "value"), [("acks", "1"), ("retries", "0"), ("max.in.flight.requests.per.connection", "6")]
)
def test_idempotence_gives_way_unless_it_is_asked_for(name: str, value: str) -> None:
    assert producer_settings({name: value}).settings["enable.idempotence"] is False
    with pytest.raises(InvalidSetting, match="idempotent producer"):
        producer_settings({name: value, "enable.idempotence": "true"})


WRONG_OF_PRODUCERS = [
    ("acks", "2", "Invalid value 2 for configuration acks: String must be one of: all, -1, 0, 1"),
    ("linger.ms", "soon", "Invalid value soon for configuration linger.ms: Not a number of type LONG"),
    ("linger.ms", "-1", "Invalid value -1 for configuration linger.ms: Value must be at least 0"),
    ("batch.size", "2147483648", "Invalid value 2147483648 for configuration batch.size: Not a number of type INT"),
    ("enable.idempotence", "x", "for configuration enable.idempotence: Expected value to be either true or false"),
    ("delivery.timeout.ms", "1", "delivery.timeout.ms should be equal to or larger than linger.ms"),
    ("partitioner.class", "com.example.Mine", "this client is not written in Java"),
    ("transaction.two.phase.commit.enable", "true", "is not supported"),
]
WRONG_OF_CONSUMERS = [
    ("isolation.level", "none", "String must be one of: read_committed, read_uncommitted"),
    ("auto.offset.reset", "by_duration:PT1H", "librdkafka has earliest, latest and none"),
    ("group.protocol", "streams", "String must be one of (case insensitive): CONSUMER, CLASSIC"),
    ("partition.assignment.strategy", "org.apache.kafka.clients.consumer.StickyAssignor", "librdkafka has"),
    ("group.remote.assignor", "uniform", "group.remote.assignor cannot be set when group.protocol=CLASSIC"),
]


@pytest.mark.parametrize(("name", "value", "sentence"), WRONG_OF_PRODUCERS)
def test_wrong_values_of_producers_are_sentences(name: str, value: str, sentence: str) -> None:
    with pytest.raises(InvalidSetting) as raised:
        producer_settings({**NO_BROKER, name: value})
    assert sentence in str(raised.value)


@pytest.mark.parametrize(("name", "value", "sentence"), WRONG_OF_CONSUMERS)
def test_wrong_values_of_consumers_are_sentences(name: str, value: str, sentence: str) -> None:
    with pytest.raises(InvalidSetting) as raised:
        consumer_settings({**NO_BROKER, name: value})
    assert sentence in str(raised.value)


@pytest.mark.parametrize("name", ["session.timeout.ms", "heartbeat.interval.ms", "partition.assignment.strategy"])
def test_settings_of_the_classic_protocol_are_refused_with_the_other(name: str) -> None:
    with pytest.raises(InvalidSetting, match=f"{name} cannot be set when group.protocol=CONSUMER"):
        consumer_settings({"group.protocol": "consumer", name: "1"})


def test_what_has_no_counterpart_is_left_out_with_a_warning() -> None:
    translated = producer_settings({"interceptor.classes": "com.example.A", "lingerms": "5", "max.block.ms": "1"})
    assert not {"interceptor.classes", "lingerms", "max.block.ms"} & set(translated.settings)
    assert translated.warnings == (
        "interceptor.classes has no effect: it names Java classes, but this client is not written in Java.",
        "lingerms has no effect: it is not a setting of this client.",
    )


def test_secrets_are_not_shown() -> None:
    assert "hidden" not in repr(Translated({"sasl.password": "hidden"}))
