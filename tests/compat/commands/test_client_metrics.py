"""kafka-client-metrics: subscriptions are created, described, listed and deleted."""

import pytest

from kaspar.acls.acl import CLUSTER_NAME, ResourceType
from tests.compat.commands.catalog import CLIENT_METRICS
from tests.compat.commands.places import Place, Places, same_at_all
from tests.compat.commands.secured import credentials, denied
from tests.compat.commands.settling import settle

NOWHERE = ("--bootstrap-server", "127.0.0.1:1")


def client_metrics(place: Place, *words: str) -> None:
    place.run(CLIENT_METRICS, *place.servers, *words)
    if "--describe" not in words:
        settle(place)


def test_a_subscription(places: Places) -> None:
    def scenario(place: Place) -> None:
        name = place.name_of("slow")
        client_metrics(place, "--describe", "--name", name)
        given = ("--interval", "1000", "--metrics", "org.a,org.b", "--match", "client_id=a.*,client_software_name=b")
        client_metrics(place, "--alter", "--name", name, *given)
        client_metrics(place, "--describe", "--name", name)
        listed = place.run_unseen(CLIENT_METRICS, *place.servers, "--list").output.splitlines()
        described = place.run_unseen(CLIENT_METRICS, *place.servers, "--describe").output.splitlines()
        place.see([name in listed, f"Client metrics configs for {name} are:" in described])
        client_metrics(place, "--alter", "--name", name, "--interval", "", "--metrics", "", "--match", "client_id=c")
        client_metrics(place, "--describe", "--name", name)
        client_metrics(place, "--delete", "--name", name)
        client_metrics(place, "--delete", "--name", name)
        client_metrics(place, "--describe", "--name", name)

    same_at_all(places, scenario)


def test_a_random_name(places: Places) -> None:
    def scenario(place: Place) -> None:
        place.mask(r"[\w-]{22}", "NAME")
        done = place.run(CLIENT_METRICS, *place.servers, "--alter", "--generate-name", "--interval", "1000")
        settle(place)
        name = done.output.split()[-1].rstrip(".")
        client_metrics(place, "--describe", "--name", name)
        client_metrics(place, "--delete", "--name", name)

    same_at_all(places, scenario)


def test_refused_settings(places: Places) -> None:
    """Kafka's command also logs the error."""

    def scenario(place: Place) -> None:
        for setting in (["--interval", "1"], ["--match", "zork=a"], ["--match", "client_id=("]):
            done = place.run_unseen(CLIENT_METRICS, *place.servers, "--alter", "--name", place.name_of("bad"), *setting)
            place.see([done.code, done.output])

    same_at_all(places, scenario)


@pytest.mark.parametrize(
    "words",
    [
        ("--name", "a"),
        ("--list", "--describe"),
        ("--list", "--name", "a"),
        ("--describe", "--interval", "1"),
        ("--delete", "--metrics", "a"),
        ("--delete",),
        ("--alter",),
        ("--alter", "--name", "a", "--generate-name"),
        ("--alter", "--name", "a", "--interval", "abc"),
        ("--alter", "--name", "a", "--interval", "3000000000"),
    ],
    ids=" ".join,
)
def test_wrong_options(places: Places, words: tuple[str, ...]) -> None:
    same_at_all(places[:2], lambda place: place.run(CLIENT_METRICS, *NOWHERE, *words))


def test_no_address(places: Places) -> None:
    same_at_all(places[:2], lambda place: place.run(CLIENT_METRICS, "--list"))


def test_no_broker(places: Places) -> None:
    """Kafka's command also logs the error."""

    def scenario(place: Place) -> None:
        soon = place.file("default.api.timeout.ms=300\nrequest.timeout.ms=300\n")
        done = place.run_unseen(CLIENT_METRICS, *NOWHERE, "--command-config", soon, "--list")
        place.see([done.code, done.output])

    same_at_all(places[:2], scenario)


def test_no_permission(places: Places) -> None:
    """Kafka's command also logs the error."""

    def scenario(place: Place) -> None:
        user = credentials(place, "carol")
        place.mask(r"(?<= : )Request Request\(.*", "Cluster authorization failed.")
        with denied(place, "carol", ResourceType.CLUSTER, CLUSTER_NAME):
            for words in (["--alter", "--name", "mine", "--interval", "1000"], ["--list"], ["--describe"]):
                done = place.run_unseen(CLIENT_METRICS, *user, *words)
                place.see([done.code, done.output])

    same_at_all(places, scenario)
