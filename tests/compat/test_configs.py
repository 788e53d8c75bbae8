"""Settings of topics through every client: seen, changed while running, applied, and refused when wrong."""

import time

import pytest

from tests.compat.drivers.api import EARLIEST, Ability, ClientError, Codec, Driver, Record
from tests.compat.scenario import FIRST, NewTopic, came, eventually, needs, refusal, sent

DEFAULTS = {
    "cleanup.policy": "delete",
    "compression.type": "producer",
    "max.message.bytes": "1048588",
    "message.timestamp.type": "CreateTime",
    "retention.bytes": "-1",
    "retention.ms": "604800000",
    "segment.bytes": "1073741824",
    "segment.ms": "604800000",
}


@needs(Ability.CONFIGS)
def test_a_topic_shows_kafkas_defaults(driver: Driver, new_topic: NewTopic) -> None:
    described = driver.describe_config(new_topic())
    assert {name: described.get(name) for name in DEFAULTS} == DEFAULTS


@needs(Ability.CONFIGS)
@pytest.mark.one_broker("min.insync.replicas is 2 in a cluster of three")
def test_a_topic_needs_one_replica_in_sync(driver: Driver, new_topic: NewTopic) -> None:
    assert driver.describe_config(new_topic())["min.insync.replicas"] == "1"


@needs(Ability.CONFIGS)
def test_a_setting_given_at_creation_is_shown(driver: Driver, new_topic: NewTopic) -> None:
    topic = new_topic(config={"segment.ms": "3600000", "cleanup.policy": "compact,delete"})
    described = driver.describe_config(topic)
    assert described["segment.ms"] == "3600000"
    assert described["cleanup.policy"] == "compact,delete"


@needs(Ability.CONFIGS)
def test_a_changed_setting_is_seen_and_applied(driver: Driver, reference: Driver, new_topic: NewTopic) -> None:
    topic = new_topic()
    record = Record(b"x" * 5000, b"k")
    driver.produce(topic, [record])
    driver.alter_config(topic, {"max.message.bytes": "1000"})
    eventually(lambda: driver.describe_config(topic)["max.message.bytes"] == "1000", "the new value")
    eventually(lambda: _is_refused(driver, topic, record), "records above the new limit refused")
    driver.alter_config(topic, {"max.message.bytes": "10000"})
    eventually(lambda: not _is_refused(driver, topic, record), "records below the raised limit taken")


def _is_refused(driver: Driver, topic: str, record: Record) -> bool:
    try:
        driver.produce(topic, [record])
    except ClientError as error:
        if error.code != "MESSAGE_TOO_LARGE":
            raise
        return True
    return False


@needs(Ability.CONFIGS)
def test_a_wrong_value_is_refused_and_nothing_changes(driver: Driver, new_topic: NewTopic) -> None:
    topic = new_topic(config={"retention.ms": "1234567"})
    assert refusal(lambda: driver.alter_config(topic, {"max.message.bytes": "many"})) == "INVALID_CONFIG"
    assert refusal(lambda: driver.alter_config(topic, {"cleanup.policy": "burn"})) == "INVALID_CONFIG"
    assert refusal(lambda: driver.alter_config(topic, {"no.such.setting": "1"})) == "INVALID_CONFIG"
    described = driver.describe_config(topic)
    assert described["retention.ms"] == "1234567"
    assert described["cleanup.policy"] == "delete"


@needs(Ability.CONFIGS)
def test_settings_of_an_unknown_topic_cannot_be_changed(driver: Driver, topic_name: str) -> None:
    outcome = refusal(lambda: driver.alter_config(topic_name, {"retention.ms": "1"}))
    assert outcome == "UNKNOWN_TOPIC_OR_PARTITION"


@needs(Ability.CONFIGS, Ability.CONFIG_ERRORS)
def test_settings_of_an_unknown_topic_cannot_be_described(driver: Driver, topic_name: str) -> None:
    assert refusal(lambda: driver.describe_config(topic_name)) == "UNKNOWN_TOPIC_OR_PARTITION"


def test_log_append_time_is_the_brokers_clock(driver: Driver, reference: Driver, new_topic: NewTopic) -> None:
    topic = new_topic(config={"message.timestamp.type": "LogAppendTime"})
    chosen = None if Ability.PRODUCE_TIMESTAMP in driver.cannot else int(time.time() * 1000) - 3_600_000
    before = int(time.time() * 1000)
    driver.produce(topic, [Record(b"v", b"k", timestamp_ms=chosen)] * 3)
    after = int(time.time() * 1000)
    stamps = [record.timestamp_ms for record in reference.consume(topic, start=FIRST, count=3)]
    assert all(before <= stamp <= after for stamp in stamps), (before, stamps, after)


@needs(Ability.PRODUCE_TIMESTAMP)
def test_create_time_is_the_clients_clock(driver: Driver, reference: Driver, new_topic: NewTopic) -> None:
    topic = new_topic()
    start = int(time.time() * 1000) - 3_600_000
    driver.produce(topic, [Record(b"v", timestamp_ms=start + stamp) for stamp in (500, 100, 900)])
    received = reference.consume(topic, start=FIRST, count=3)
    assert [record.timestamp_ms - start for record in received] == [500, 100, 900]


@needs(Ability.PRODUCE_TIMESTAMP)
def test_a_timestamp_out_of_bounds_is_refused(driver: Driver, new_topic: NewTopic) -> None:
    topic = new_topic(config={"message.timestamp.before.max.ms": "60000"})
    old = Record(b"v", b"k", timestamp_ms=int(time.time() * 1000) - 3_600_000)
    assert refusal(lambda: driver.produce(topic, [old])) == "INVALID_TIMESTAMP"
    assert driver.produce(topic, [Record(b"v", b"k")]) == [0]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd", "uncompressed"])
@needs(Ability.CONSUME)
def test_a_topic_with_its_own_codec_gives_back_what_came(driver: Driver, new_topic: NewTopic, codec: str) -> None:
    topic = new_topic(config={"compression.type": codec})
    records = [Record(b"value-%d" % n * 20, b"key", headers=(("n", b"1"),)) for n in range(20)]
    sent_with: tuple[Codec, ...] = ("none", "lz4")
    for each in sent_with:
        driver.produce(topic, records, codec=each)
    assert came(driver.consume(topic, start=EARLIEST, count=40)) == sent(records * 2)
