"""kafka-groups: what it prints, beside Kafka's."""

import pytest

from kaspar.base.ids import TopicPartition
from kaspar.client import Client
from kaspar.client.offsets import commit_offsets
from tests.compat.commands.catalog import GROUPS
from tests.compat.commands.places import Place, Places, same_at_all
from tests.peers.observed import wait_until
from tests.peers.raw_client import RawClient

ADDRESS = ("--bootstrap-server", "127.0.0.1:1")
FILTERS = [
    (),
    ("--consumer",),
    ("--share",),
    ("--streams",),
    ("--group-type", "Classic"),
    ("--group-type", "consumer"),
    ("--protocol", "consumer"),
    ("--protocol", ""),
    ("--protocol", "", "--group-type", "classic"),
]


def test_groups_are_listed(places: Places) -> None:
    def scenario(place: Place) -> None:
        topic, group = place.name_of("orders"), place.name_of("billing")
        with RawClient(place.broker.port) as client:
            assert client.create_topic(topic) == 0
        wait_until(lambda: place.broker.lead(topic, [0]), f"{topic} has a leader")
        with Client(place.broker.bootstrap) as client:
            assert commit_offsets(client, group, {TopicPartition(topic, 0): 1}) == {}
        for words in FILTERS:
            done = place.run_unseen(GROUPS, *place.servers, "--list", *words)
            header, *lines = [line.split() for line in done.output.splitlines()]
            place.see([done.code, header, [line for line in lines if line[0] == group]])

    same_at_all(places, scenario)


WRONG = [
    ADDRESS,
    ("--list",),
    (*ADDRESS, "--list", "--group-type", "odd"),
    (*ADDRESS, "--list", "--consumer", "--share"),
    (*ADDRESS, "--list", "--consumer", "--protocol", "x"),
    (*ADDRESS, "--list", "--share", "--group-type", "classic"),
    (*ADDRESS, "--list", "--streams", "--group-type", "classic"),
]


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_wrong_options(places: Places, arguments: tuple[str, ...]) -> None:
    kafka, ours, _ = places
    same_at_all((kafka, ours), lambda place: place.see(place.run(GROUPS, *arguments).code))


def test_no_broker_reachable_is_a_sentence_after_the_timeout(places: Places) -> None:
    def scenario(place: Place) -> None:
        config = place.file("default.api.timeout.ms=300\nrequest.timeout.ms=200\n")
        place.mask(r"^\[main\] ERROR .*", "")
        place.run(GROUPS, *ADDRESS, "--list", "--command-config", config)

    kafka, ours, _ = places
    same_at_all((kafka, ours), scenario)
