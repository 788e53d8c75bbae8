"""Commands about topics and logs as a user without permission: the sentences and exit codes of Kafka's."""

from pathlib import Path

from tests.compat.commands.catalog import ACLS, BROKER_API_VERSIONS, DELETE_RECORDS, GET_OFFSETS, LOG_DIRS, TOPICS
from tests.compat.commands.places import Place, Places, same_at_all
from tests.compat.commands.secured import credentials
from tests.compat.commands.settling import settle
from tests.peers.observed import wait_until
from tests.peers.raw_client import RawClient


def _secret_topic(place: Place, what: str) -> str:
    topic = place.name_of(what)
    with RawClient(place.broker.port) as client:
        assert client.create_topic(topic, partitions=1) == 0
    wait_until(lambda: place.broker.lead(topic, [0]), f"{topic} is led")
    return topic


def _denied(place: Place, *resource: str) -> tuple[str | Path, ...]:
    """The options of a user who may do nothing with that resource."""
    user = credentials(place, "eve")
    deny = ("--add", "--deny-principal", f"User:{place.name_of('eve')}", "--operation", "All", "--force", *resource)
    assert place.run_unseen(ACLS, *place.servers, *deny).code == 0
    settle(place)
    return user


def test_topics_that_a_user_may_not_see(places: Places) -> None:
    def scenario(place: Place) -> None:
        topic = _secret_topic(place, "secret")
        user = _denied(place, "--topic", topic)
        new = place.name_of("new")
        _denied(place, "--topic", new)
        place.run(TOPICS, *user, "--create", "--topic", new)
        place.run(TOPICS, *user, "--list", "--topic", topic)
        place.run(TOPICS, *user, "--describe", "--topic", topic)
        place.run(TOPICS, *user, "--delete", "--topic", topic)
        place.run(TOPICS, *user, "--alter", "--topic", topic, "--partitions", "2")
        place.run(GET_OFFSETS, *user, "--topic", topic)
        offsets = place.file(f'{{"partitions": [{{"topic": "{topic}", "partition": 0, "offset": 0}}]}}')
        done = place.run_unseen(DELETE_RECORDS, *user, "--offset-json-file", offsets)
        place.see([done.code, done.output])

    same_at_all(places, scenario)


def test_topics_that_a_user_may_only_see(places: Places) -> None:
    def scenario(place: Place) -> None:
        topic = _secret_topic(place, "visible")
        user = credentials(place, "bob")
        operations = [word for each in ("Delete", "Alter", "DescribeConfigs", "Read") for word in ("--operation", each)]
        deny = ("--add", "--deny-principal", f"User:{place.name_of('bob')}", *operations, "--force", "--topic", topic)
        assert place.run_unseen(ACLS, *place.servers, *deny).code == 0
        settle(place)
        place.run(TOPICS, *user, "--list", "--topic", topic)
        place.run(TOPICS, *user, "--describe", "--topic", topic)
        place.run(TOPICS, *user, "--delete", "--topic", topic)
        place.run(TOPICS, *user, "--alter", "--topic", topic, "--partitions", "2")
        offsets = place.file(f'{{"partitions": [{{"topic": "{topic}", "partition": 0, "offset": 0}}]}}')
        done = place.run_unseen(DELETE_RECORDS, *user, "--offset-json-file", offsets)
        place.see([done.code, done.output])

    same_at_all(places, scenario)


def test_cluster_that_a_user_may_not_describe(places: Places) -> None:
    def scenario(place: Place) -> None:
        topic = _secret_topic(place, "plain")
        user = _denied(place, "--cluster")
        place.run(LOG_DIRS, *user, "--describe")
        place.run(TOPICS, *user, "--describe", "--topic", topic)
        assert place.run_unseen(BROKER_API_VERSIONS, *user).code == 0

    same_at_all(places, scenario)


def test_wrong_password(places: Places) -> None:
    def scenario(place: Place) -> None:
        user = credentials(place, "mallory", password="wrong")
        for command, arguments in (
            (TOPICS, ("--list",)),
            (GET_OFFSETS, ()),
            (LOG_DIRS, ("--describe",)),
            (BROKER_API_VERSIONS, ()),
        ):
            place.see(place.run_unseen(command, *user, *arguments).code)

    same_at_all(places[:2], scenario)
