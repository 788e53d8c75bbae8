"""kafka-delete-records: what it prints and deletes, beside Kafka's."""

import json

import pytest

from kaspar.client import Client
from kaspar.records import Record, build_batch
from tests.compat.commands.catalog import DELETE_RECORDS, GET_OFFSETS
from tests.compat.commands.places import Place, Places, same_at_all
from tests.peers.observed import wait_until
from tests.peers.raw_client import RawClient

ADDRESS = ("--bootstrap-server", "127.0.0.1:1")


def _topic(place: Place) -> str:
    topic = place.name_of("log")
    with RawClient(place.broker.port) as client:
        assert client.create_topic(topic, partitions=3) == 0
    wait_until(lambda: place.broker.lead(topic, range(3)), f"{topic} is led")
    with Client(place.broker.bootstrap) as client:
        for partition in range(3):
            batch = build_batch([Record(1_700_000_000_000, None, b"value") for _ in range(5)])
            client.produce(topic, partition, bytes(batch))
    return topic


def _delete(place: Place, content: object) -> None:
    text = content if isinstance(content, str) else json.dumps(content)
    place.run(DELETE_RECORDS, *place.servers, "--offset-json-file", place.file(text), in_order=False)


def test_records_before_offsets_are_deleted(places: Places) -> None:
    def scenario(place: Place) -> None:
        topic = _topic(place)
        offsets = [(0, 3), (1, -1), (2, 9)]
        entries = [{"topic": topic, "partition": number, "offset": offset} for number, offset in offsets]
        _delete(place, {"partitions": entries, "version": 1})
        place.run(GET_OFFSETS, *place.servers, "--topic", topic, "--time", "earliest")
        _delete(place, {"partitions": [{"topic": topic, "partition": 0, "offset": 1}]})
        _delete(place, {"partitions": []})

    same_at_all(places, scenario)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "zork",
        "[]",
        "{}",
        '{"partitions": {}}',
        '{"partitions": [], "version": 2}',
        '{"partitions": [], "version": "x"}',
        '{"partitions": [{"topic": "foo", "partition": 0}]}',
        '{"partitions": [{"topic": 1, "partition": 0, "offset": 0}]}',
        '{"partitions": [{"topic": "foo", "partition": "x", "offset": 0}]}',
        '{"partitions": [{"topic": "foo", "partition": 0, "offset": 1.5}]}',
        '{"partitions": [{"topic": "a", "partition": 0, "offset": 1}, {"topic": "a", "partition": 0, "offset": 2}]}',
    ],
)
def test_wrong_files(text: str, places: Places) -> None:
    same_at_all(places[:2], lambda place: _delete(place, text))


def test_wrong_options(places: Places) -> None:
    def scenario(place: Place) -> None:
        place.run(DELETE_RECORDS, *ADDRESS)
        place.run(DELETE_RECORDS, "--offset-json-file", "x")
        place.run(DELETE_RECORDS, *ADDRESS, "--offset-json-file", "/nowhere")

    same_at_all(places[:2], scenario)


def test_no_broker_is_an_error_of_every_partition(places: Places) -> None:
    def scenario(place: Place) -> None:
        timeouts = place.file("default.api.timeout.ms=700\nrequest.timeout.ms=300\n", "timeouts")
        content = place.file('{"partitions": [{"topic": "foo", "partition": 0, "offset": 1}]}')
        place.run(DELETE_RECORDS, *ADDRESS, "--offset-json-file", content, "--command-config", timeouts)

    same_at_all(places[:2], scenario)


def test_unknown_topic_is_refused_at_once(places: Places) -> None:
    """Kafka's command asks for it until its time is up, a minute, and then reports that."""
    for place in places[1:]:
        content = place.file('{"partitions": [{"topic": "no-such-topic", "partition": 0, "offset": 1}]}')
        done = place.run_unseen(DELETE_RECORDS, *place.servers, "--offset-json-file", content)
        assert done.code == 0
        assert (
            "partition: no-such-topic-0\terror: org.apache.kafka.common.errors.UnknownTopicOrPartition" in done.output
        )
