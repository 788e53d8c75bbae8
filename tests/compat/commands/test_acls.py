"""kafka-acls: ACLs are added, listed and removed."""

import pytest

from kaspar.acls.acl import CLUSTER_NAME, ResourceType
from tests.compat.commands.catalog import ACLS
from tests.compat.commands.places import Place, Places, same_at_all
from tests.compat.commands.secured import credentials, denied
from tests.compat.commands.settling import settle
from tests.compat.tools.comparing import sentences
from tests.peers.kafka import ApacheKafka

NOWHERE = ("--bootstrap-server", "127.0.0.1:1")


def acls(place: Place, *words: str) -> None:
    """Kafka's command prints ACLs in the order of a hash table, which differs from run to run."""
    done = place.run_unseen(ACLS, *place.servers, *words)
    lines = [sentences(text).splitlines() for text in (done.output, done.errors)]
    place.see([done.code, *(sorted(line.strip() for line in each) for each in lines)])
    if "--list" not in words:
        settle(place)


def test_acls_are_added_listed_and_removed(places: Places) -> None:
    def scenario(place: Place) -> None:
        topic, group, alice, bob = (place.name_of(name) for name in ("orders", "group", "alice", "bob"))
        allow_alice = ("--allow-principal", f"User:{alice}")
        acls(place, "--add", *allow_alice, "--producer", "--topic", topic)
        acls(place, "--add", *allow_alice, "--producer", "--topic", topic)
        acls(place, "--list", "--topic", topic)
        both = ("--allow-principal", f" User:{bob} ", *allow_alice)
        acls(place, "--add", *both, "--consumer", "--topic", topic, "--topic", f"{topic}x", "--group", group)
        acls(place, "--list", "--topic", topic, "--topic", f"{topic}x", "--group", group)
        acls(place, "--list", "--principal", f"User:{bob}")
        acls(place, "--list", "--topic", topic, "--principal", f"User:{bob}", "--principal", f"User:{alice}")
        acls(place, "--list", "--principal", "User:nobody")
        acls(place, "--remove", "--force", *allow_alice, "--operation", "Write", "--topic", topic)
        acls(place, "--list", "--topic", topic)
        acls(place, "--remove", "--force", *both, "--consumer", "--topic", topic, "--group", group)
        acls(place, "--list", "--topic", topic, "--group", group)
        acls(place, "--remove", "--force", "--topic", topic, "--topic", f"{topic}x")
        acls(place, "--list", "--topic", topic)

    same_at_all(places, scenario)


def test_all_types_of_resources(places: Places) -> None:
    def scenario(place: Place) -> None:
        name, alice = place.name_of("resource"), place.name_of("alice")
        allow = ("--allow-principal", f"User:{alice}")
        everything = ("--topic", name, "--group", name, "--transactional-id", name, "--delegation-token", name)
        acls(place, "--add", *allow, "--operation", "describe", *everything)
        acls(place, "--add", *allow, "--operation", "CreateTokens", "--user-principal", f"User:{name}")
        acls(place, "--add", *allow, "--operation", "TwoPhaseCommit", "--transactional-id", name)
        acls(place, "--add", *allow, "--operation", "Alter", "--allow-host", "10.0.0.1", "--cluster")
        producer = ("--producer", "--topic", name, "--transactional-id", name, "--idempotent")
        acls(place, "--add", *allow, *producer)
        acls(place, "--add", *allow, "--producer", "--consumer", "--topic", f"{name}x", "--group", name)
        acls(place, "--list", "--principal", f"User:{alice}")
        acls(place, "--remove", "--force", *allow, *producer)
        acls(place, "--remove", "--force", *allow, "--allow-host", "10.0.0.1", "--operation", "Alter", "--cluster")
        acls(place, "--remove", "--force", *everything, "--topic", f"{name}x", "--user-principal", f"User:{name}")
        acls(place, "--list", "--principal", f"User:{alice}")

    same_at_all(places, scenario)


def test_patterns_and_hosts(places: Places) -> None:
    def scenario(place: Place) -> None:
        prefix, bob = place.name_of("audit"), place.name_of("bob")
        prefixed = ("--topic", prefix, "--resource-pattern-type", "prefixed")
        deny = ("--deny-principal", f"User:{bob}", "--deny-host", "10.0.0.1", "--deny-host", "10.0.0.2")
        acls(place, "--add", *deny, "--operation", "Read", "--operation", "DESCRIBE", *prefixed)
        acls(place, "--add", "--allow-principal", "User:*", "--topic", f"{prefix}-2026")
        for pattern_type in ("literal", "prefixed", "any", "MATCH", "zork"):
            acls(place, "--list", "--topic", f"{prefix}-2026", "--resource-pattern-type", pattern_type)
        acls(place, "--list", "--topic", prefix, "--resource-pattern-type", "any")
        acls(place, "--add", *deny, "--topic", prefix, "--resource-pattern-type", "match")
        acls(place, "--remove", "--force", "--topic", f"{prefix}-2026", "--resource-pattern-type", "match")
        acls(place, "--list", *prefixed)

    same_at_all(places, scenario)


@pytest.mark.parametrize(
    "words",
    [
        ("--topic", "t"),
        ("--allow-principal", "User:a"),
        ("--allow-principal", "a", "--topic", "t"),
        ("--allow-principal", "User:a", "--topic", "t", "--operation", "Any"),
        ("--allow-principal", "User:a", "--topic", ""),
    ],
    ids=" ".join,
)
def test_acls_that_cannot_be_added(places: Places, words: tuple[str, ...]) -> None:
    same_at_all(places, lambda place: acls(place, "--add", *words))


def test_operations_that_a_resource_does_not_have(places: Places) -> None:
    """Kafka's command lists those that it has in any order."""

    def scenario(place: Place) -> None:
        for resource, operation in ((["--topic", "t"], "zork"), (["--cluster"], "Read"), (["--group", "g"], "Write")):
            allow = ("--add", "--allow-principal", "User:a", "--operation", operation)
            done = place.run_unseen(ACLS, *place.servers, *allow, *resource)
            sentence, _, operations = sentences(done.errors).partition("[")
            place.see([done.code, sentence, sorted(operations.rstrip("]").split(", "))])

    same_at_all(places, scenario)


@pytest.mark.parametrize(
    "words",
    [
        ("--add", "--list"),
        ("--topic", "t"),
        ("--list", "--bootstrap-controller", "127.0.0.1:1"),
        ("--list", "--producer"),
        ("--list", "--allow-host", "a"),
        ("--list", "--deny-principal", "User:a"),
        ("--add", "--producer", "--allow-principal", "User:a"),
        ("--add", "--producer", "--topic", "t", "--operation", "Read", "--allow-principal", "User:a"),
        ("--add", "--consumer", "--topic", "t", "--allow-principal", "User:a"),
        ("--add", "--consumer", "--topic", "t", "--group", "g", "--cluster", "--allow-principal", "User:a"),
        ("--add", "--consumer", "--topic", "t", "--group", "g", "--deny-principal", "User:a"),
        ("--add", "--idempotent", "--topic", "t", "--allow-principal", "User:a"),
        ("--add", "--principal", "User:a", "--topic", "t", "--allow-principal", "User:a"),
    ],
    ids=" ".join,
)
def test_wrong_options(places: Places, words: tuple[str, ...]) -> None:
    same_at_all(places[:2], lambda place: place.run(ACLS, *NOWHERE, *words))


def test_no_address(places: Places) -> None:
    same_at_all(places[:2], lambda place: place.run(ACLS, "--list"))


def test_removal_asks(places: Places) -> None:
    """Kafka's command asks at a terminal only, and fails elsewhere; the question is the same."""
    _, ours, _ = places
    topic = ours.name_of("orders")
    allow = ("--allow-principal", "User:alice", "--topic", topic)
    assert ours.run_unseen(ACLS, *ours.servers, "--add", *allow).code == 0
    pattern = f"`ResourcePattern(resourceType=TOPIC, name={topic}, patternType=LITERAL)`"
    entry = "(principal=User:alice, host=*, operation=ALL, permissionType=ALLOW)"
    some = f"Are you sure you want to remove ACLs: \n \t{entry}\n from resource filter {pattern}? (y/n)\n"
    everything = f"Are you sure you want to delete all ACLs for resource filter {pattern}? (y/n)\n"

    for typed, is_left, words, question in (
        (b"n\n", True, allow, some),
        (b"", True, ("--topic", topic), everything),
        (b"Y\n", False, ("--topic", topic), everything),
    ):
        done = ours.run_unseen(ACLS, *ours.servers, "--remove", *words, standard_input=typed)
        assert done.output.startswith(question)
        assert done.code == (0 if typed else 1)
        listed = ours.run_unseen(ACLS, *ours.servers, "--list", "--topic", topic).output
        assert (entry in listed) is is_left


def test_question_is_kafkas(places: Places) -> None:
    kafkas, _, _ = places
    done = kafkas.run_unseen(ACLS, *kafkas.servers, "--remove", "--topic", "t", "--allow-principal", "User:a")
    pattern = "`ResourcePattern(resourceType=TOPIC, name=t, patternType=LITERAL)`"
    entry = "(principal=User:a, host=*, operation=ALL, permissionType=ALLOW)"
    question = f"Are you sure you want to remove ACLs: \n \t{entry}\n from resource filter {pattern}? (y/n)\n"
    assert done.output.startswith(question)


def test_no_broker(places: Places) -> None:
    def scenario(place: Place) -> None:
        soon = place.file("default.api.timeout.ms=300\nrequest.timeout.ms=300\n")
        place.run(ACLS, *NOWHERE, "--command-config", soon, "--list")

    same_at_all(places[:2], scenario)


def test_no_permission(places: Places) -> None:
    def scenario(place: Place) -> None:
        user = credentials(place, "carol")
        place.mask(r"Request Request\(.*", "Cluster authorization failed.")  # Apache Kafka's brokers describe it
        with denied(place, "carol", ResourceType.CLUSTER, CLUSTER_NAME):
            place.run(ACLS, *user, "--list")
            place.run(ACLS, *user, "--remove", "--force", "--topic", "t")
            place.run(ACLS, *user, "--add", "--allow-principal", "User:carol", "--topic", "t")

    same_at_all(places, scenario)


def test_wrong_password(places: Places) -> None:
    """Kafka's command also logs the error."""

    def scenario(place: Place) -> None:
        done = place.run_unseen(ACLS, *credentials(place, "carol", password="wrong"), "--list")
        place.see([done.code, sentences(done.output)])

    same_at_all(places, scenario)


def test_controllers(places: Places, apache_kafka: ApacheKafka) -> None:
    """Of Apache Kafka: our brokers have no endpoints of controllers."""

    def scenario(place: Place) -> None:
        topic = place.name_of("orders")
        controllers = ("--bootstrap-controller", f"{apache_kafka.host}:{apache_kafka.controller_port}")
        place.run(ACLS, *controllers, "--add", "--allow-principal", "User:alice", "--topic", topic)
        settle(place)
        place.run(ACLS, *controllers, "--list", "--topic", topic)
        place.run(ACLS, *controllers, "--remove", "--force", "--topic", topic)
        settle(place)
        place.run(ACLS, *controllers, "--list", "--topic", topic)

    kafkas, _, ours = places
    kafkas.broker = apache_kafka
    same_at_all((kafkas, ours), scenario)
