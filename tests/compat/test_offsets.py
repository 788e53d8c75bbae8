"""Offsets through every client: earliest, latest, by timestamp, of the largest timestamp, after deleted records."""

import time

from tests.compat.drivers.api import EARLIEST, LATEST, MAX_TIMESTAMP, Ability, Driver, Record, at_offset, at_timestamp
from tests.compat.scenario import NewTopic, eventually, needs, refusal

HOUR_MS = 3_600_000


def test_an_empty_partition_starts_and_ends_at_zero(driver: Driver, new_topic: NewTopic) -> None:
    topic = new_topic()
    assert driver.list_offset(topic, EARLIEST) == 0
    assert driver.list_offset(topic, LATEST) == 0


def test_the_end_is_after_the_last_record(driver: Driver, reference: Driver, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=2)
    reference.produce(topic, [Record(b"v", partition=1)] * 5)
    assert driver.list_offset(topic, EARLIEST, partition=1) == 0
    assert driver.list_offset(topic, LATEST, partition=1) == 5
    assert driver.list_offset(topic, LATEST, partition=0) == 0


@needs(Ability.OFFSETS_BY_TIMESTAMP)
def test_a_timestamp_finds_the_first_record_that_is_not_older(
    driver: Driver, reference: Driver, new_topic: NewTopic
) -> None:
    topic = new_topic()
    start = int(time.time() * 1000) - HOUR_MS
    for stamps in ((0, 1000), (2000, 3000)):
        reference.produce(topic, [Record(b"v", timestamp_ms=start + stamp) for stamp in stamps])
    assert driver.list_offset(topic, at_timestamp(start - 500)) == 0
    assert driver.list_offset(topic, at_timestamp(start + 1000)) == 1
    assert driver.list_offset(topic, at_timestamp(start + 1001)) == 2
    assert driver.list_offset(topic, at_timestamp(start + 3000)) == 3
    assert driver.list_offset(topic, at_timestamp(start + 3001)) == -1


@needs(Ability.MAX_TIMESTAMP)
def test_the_largest_timestamp_need_not_be_the_last(driver: Driver, reference: Driver, new_topic: NewTopic) -> None:
    topic = new_topic()
    start = int(time.time() * 1000) - HOUR_MS
    assert driver.list_offset(topic, MAX_TIMESTAMP) == -1
    reference.produce(topic, [Record(b"v", timestamp_ms=start + stamp) for stamp in (100, 900, 300)])
    reference.produce(topic, [Record(b"v", timestamp_ms=start + stamp) for stamp in (200, 400)])
    assert driver.list_offset(topic, MAX_TIMESTAMP) == 1


@needs(Ability.DELETE_RECORDS)
def test_deleted_records_are_gone_and_the_rest_stays(driver: Driver, reference: Driver, new_topic: NewTopic) -> None:
    topic = new_topic()
    reference.produce(topic, [Record(b"%d" % n) for n in range(10)])
    assert driver.delete_records(topic, 4) == 4
    eventually(lambda: driver.list_offset(topic, EARLIEST) == 4, "the new start")
    assert driver.list_offset(topic, LATEST) == 10
    received = reference.consume(topic, start=EARLIEST, count=6)
    assert [(record.offset, record.value) for record in received] == [(n, b"%d" % n) for n in range(4, 10)]
    assert refusal(lambda: reference.consume(topic, start=at_offset(3), count=1, reset="none")) == "OFFSET_OUT_OF_RANGE"


@needs(Ability.DELETE_RECORDS)
def test_all_records_may_be_deleted(driver: Driver, reference: Driver, new_topic: NewTopic) -> None:
    topic = new_topic()
    reference.produce(topic, [Record(b"v")] * 3)
    assert driver.delete_records(topic, 3) == 3
    eventually(lambda: driver.list_offset(topic, EARLIEST) == 3, "the start at the end")
    assert reference.produce(topic, [Record(b"next")]) == [3]


@needs(Ability.DELETE_RECORDS)
def test_records_after_the_end_cannot_be_deleted(driver: Driver, reference: Driver, new_topic: NewTopic) -> None:
    topic = new_topic()
    reference.produce(topic, [Record(b"v")] * 3)
    assert refusal(lambda: driver.delete_records(topic, 4)) == "OFFSET_OUT_OF_RANGE"
    assert driver.list_offset(topic, EARLIEST) == 0
