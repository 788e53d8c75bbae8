"""kafka-log-dirs: the same JSON as Kafka's."""

import json
from typing import Any

from kaspar.client import Client
from kaspar.records import Record, build_batch
from tests.compat.commands.catalog import LOG_DIRS
from tests.compat.commands.places import Place, Places, same_at_all
from tests.peers.observed import wait_until
from tests.peers.raw_client import RawClient

ADDRESS = ("--bootstrap-server", "127.0.0.1:1")


def _topic(place: Place, what: str) -> str:
    topic = place.name_of(what)
    with RawClient(place.broker.port) as client:
        assert client.create_topic(topic, partitions=2) == 0
    wait_until(lambda: place.broker.lead(topic, range(2)), f"{topic} is led")
    with Client(place.broker.bootstrap) as client:
        client.produce(topic, 0, bytes(build_batch([Record(1_700_000_000_000, None, b"value")])))
    return topic


def _describe(place: Place, *arguments: str) -> None:
    """The order of partitions is that of a hash table with Kafka's; directories are masked."""
    done = place.run_unseen(LOG_DIRS, *place.servers, "--describe", *arguments)
    *head, text = done.output.splitlines()
    assert text == json.dumps(json.loads(text), separators=(",", ":")), "it is one line without blanks"
    described: dict[str, Any] = json.loads(text)
    for directory in (each for broker in described["brokers"] for each in broker["logDirs"]):
        directory["partitions"].sort(key=lambda each: each["partition"])
        assert directory.pop("logDir") == str(place.broker.data_dir)
    place.see([done.code, *head, json.dumps(described)])


def test_partitions_and_their_sizes(places: Places) -> None:
    def scenario(place: Place) -> None:
        first, second = _topic(place, "alpha"), _topic(place, "beta")
        _describe(place, "--topic-list", first)
        _describe(place, "--topic-list", f"{first},{second},nothing", "--broker-list", "1")
        _describe(place, "--topic-list", "nothing", "--broker-list", "1,1")

    same_at_all(places, scenario)


def test_all_partitions_are_described_without_a_list(places: Places) -> None:
    for place in places:
        topic = _topic(place, "alpha")
        for arguments in ((), ("--topic-list", ""), ("--broker-list", "")):
            done = place.run_unseen(LOG_DIRS, *place.servers, "--describe", *arguments)
            assert f'"{topic}-1"' in done.output


def test_wrong_options(places: Places) -> None:
    def scenario(place: Place) -> None:
        place.run(LOG_DIRS, *place.servers)
        place.run(LOG_DIRS, "--describe")
        place.run(LOG_DIRS, *place.servers, "--broker-list", "1")
        for brokers in ("9", "1,9", "8,9", "x", "1, 2"):
            place.run(LOG_DIRS, *place.servers, "--describe", "--broker-list", brokers)

    same_at_all(places, scenario)


def test_no_broker_is_a_sentence_after_the_timeout(places: Places) -> None:
    def scenario(place: Place) -> None:
        timeouts = place.file("default.api.timeout.ms=700\nrequest.timeout.ms=300\n")
        place.run(LOG_DIRS, *ADDRESS, "--describe", "--command-config", timeouts)

    same_at_all(places[:2], scenario)
