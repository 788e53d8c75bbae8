"""Producing with every client: what is acknowledged is in the log, in order and unchanged."""

import pytest

from tests.compat.drivers.api import LATEST, Ability, Acks, Codec, Driver, Record, at_offset
from tests.compat.partition_folder import CODECS, stored_codecs
from tests.compat.scenario import FIRST, NewTopic, came, eventually, needs, refusal, sent
from tests.peers.brokers import Brokers

RECORDS = [Record(b"value-%d " % n * 20, b"key-%d" % n) for n in range(50)]


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_is_read_back_as_it_was_sent(
    broker: Brokers, driver: Driver, reference: Driver, new_topic: NewTopic, codec: Codec
) -> None:
    topic = new_topic()
    assert driver.produce(topic, RECORDS, codec=codec) == list(range(50))
    # A client that does not find the broker's APIs as it expects them sends uncompressed without a word.
    assert stored_codecs(broker.leader(topic, 0).data_dir / f"{topic}-0") == {codec}
    assert came(reference.consume(topic, start=FIRST, count=50)) == sent(RECORDS)


@pytest.mark.parametrize("acks", ["1", "all"])
def test_an_acknowledged_record_has_its_offset(driver: Driver, new_topic: NewTopic, acks: Acks) -> None:
    topic = new_topic()
    assert driver.produce(topic, RECORDS[:3], acks=acks) == [0, 1, 2]
    assert driver.produce(topic, RECORDS[:2], acks=acks) == [3, 4]


def test_records_without_acknowledgement_arrive(driver: Driver, reference: Driver, new_topic: NewTopic) -> None:
    topic = new_topic()
    assert driver.produce(topic, RECORDS[:10], acks="0") == [-1] * 10
    eventually(lambda: reference.list_offset(topic, LATEST) == 10, "ten records in the log")
    assert came(reference.consume(topic, start=FIRST, count=10)) == sent(RECORDS[:10])


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_an_idempotent_producer_writes_each_record_once(
    driver: Driver, reference: Driver, new_topic: NewTopic, codec: Codec
) -> None:
    topic = new_topic()
    assert driver.produce(topic, RECORDS, idempotent=True, codec=codec) == list(range(50))
    assert driver.produce(topic, RECORDS[:5], idempotent=True, codec=codec) == list(range(50, 55))
    assert reference.list_offset(topic, LATEST) == 55
    assert came(reference.consume(topic, start=at_offset(45), count=10)) == sent(RECORDS[45:] + RECORDS[:5])


def test_one_call_may_write_to_several_partitions(driver: Driver, reference: Driver, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=4)
    records = [Record(b"to-%d" % (n % 4), b"key", partition=n % 4) for n in range(12)]
    records.sort(key=lambda record: record.partition)
    assert driver.produce(topic, records) == [0, 1, 2] * 4
    for partition in range(4):
        received = reference.consume(topic, start=FIRST, count=3, partition=partition)
        assert [record.value for record in received] == [b"to-%d" % partition] * 3


def test_headers_keep_their_order_and_may_repeat(driver: Driver, reference: Driver, new_topic: NewTopic) -> None:
    topic = new_topic()
    record = Record(b"v", b"k", headers=(("trace", b"1"), ("trace", b"2"), ("empty", b""), ("größe", b"5")))
    driver.produce(topic, [record])
    assert came(reference.consume(topic, start=FIRST, count=1)) == sent([record])


@needs(Ability.NULL_HEADER)
def test_a_header_may_be_null(driver: Driver, reference: Driver, new_topic: NewTopic) -> None:
    topic = new_topic()
    record = Record(b"v", b"k", headers=(("none", None), ("some", b"thing")))
    driver.produce(topic, [record])
    assert came(reference.consume(topic, start=FIRST, count=1)) == sent([record])


@needs(Ability.BINARY_HEADER)
def test_a_header_may_be_any_bytes(driver: Driver, reference: Driver, new_topic: NewTopic) -> None:
    topic = new_topic()
    record = Record(b"v", b"k", headers=(("bytes", bytes(range(256))),))
    driver.produce(topic, [record])
    assert came(reference.consume(topic, start=FIRST, count=1)) == sent([record])


def test_null_and_empty_are_different(driver: Driver, reference: Driver, new_topic: NewTopic) -> None:
    topic = new_topic()
    records = [Record(b"value"), Record(None, b"tombstone"), Record(b"", b"empty"), Record(b"value", b"")]
    assert driver.produce(topic, records) == [0, 1, 2, 3]
    assert came(reference.consume(topic, start=FIRST, count=4)) == sent(records)


@needs(Ability.EMPTY_RECORD)
def test_a_record_may_hold_nothing(driver: Driver, reference: Driver, new_topic: NewTopic) -> None:
    topic = new_topic()
    records = [Record(None), Record(b"")]
    assert driver.produce(topic, records) == [0, 1]
    assert came(reference.consume(topic, start=FIRST, count=2)) == sent(records)


def test_a_record_of_a_megabyte_is_taken(driver: Driver, reference: Driver, new_topic: NewTopic) -> None:
    topic = new_topic()
    record = Record(bytes(range(250)) * 4000, b"large")
    assert driver.produce(topic, [record]) == [0]
    assert came(reference.consume(topic, start=FIRST, count=1)) == sent([record])


def test_a_record_that_is_too_large_is_refused_and_the_next_one_taken(driver: Driver, new_topic: NewTopic) -> None:
    topic = new_topic()
    assert refusal(lambda: driver.produce(topic, [Record(b"x" * 2_000_000, b"k")])) == "MESSAGE_TOO_LARGE"
    assert driver.produce(topic, [Record(b"small")]) == [0]


@needs(Ability.RECORD_ERRORS)
def test_a_keyless_record_on_a_compacted_topic_is_refused(driver: Driver, new_topic: NewTopic) -> None:
    topic = new_topic(config={"cleanup.policy": "compact"})
    assert refusal(lambda: driver.produce(topic, [Record(b"no key")])) == "INVALID_RECORD"
    assert driver.produce(topic, [Record(b"value", b"key")]) == [0]
