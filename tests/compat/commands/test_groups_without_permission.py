"""Commands about groups, transactions and the cluster as a user who may do nothing, beside Kafka's."""

import re
from collections.abc import Iterator

import pytest

from kaspar.acls.acl import ResourceType
from kaspar.base.ids import TopicPartition
from kaspar.client import Client
from kaspar.client.offsets import commit_offsets
from tests.compat.commands.catalog import (
    CLUSTER,
    CONSUMER_GROUPS,
    FEATURES,
    GROUPS,
    METADATA_QUORUM,
    TRANSACTIONS,
)
from tests.compat.commands.places import Place, Places, same_at_all
from tests.compat.commands.secured import credentials, denied
from tests.compat.tools.comparing import Command, run_ours, sentences
from tests.peers.kafka_tools import Done, KafkaTools
from tests.peers.kaspar import KasparProcess
from tests.peers.observed import wait_until
from tests.peers.raw_client import RawClient

ALLOW = "allow.everyone.if.no.acl.found"
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
    "default.api.timeout.ms": "1000",
}
CASES: list[tuple[Command, tuple[str, ...]]] = [
    (CONSUMER_GROUPS, ("--list",)),
    *((CONSUMER_GROUPS, ("--describe", "--group", "x", *details)) for details in ((), ("--members",), ("--state",))),
    (CONSUMER_GROUPS, ("--delete", "--group", "x", "--group", "y")),
    (CONSUMER_GROUPS, ("--delete-offsets", "--group", "x", "--topic", "orders:0")),
    (CONSUMER_GROUPS, ("--reset-offsets", "--group", "x", "--topic", "orders", "--to-latest", "--dry-run")),
    (GROUPS, ("--list",)),
    (TRANSACTIONS, ("list",)),
    (TRANSACTIONS, ("describe", "--transactional-id", "x")),
    (TRANSACTIONS, ("forceTerminateTransaction", "--transactionalId", "x")),
    (FEATURES, ("describe",)),
    (FEATURES, ("downgrade", "--feature", "transaction.version=1")),
    (METADATA_QUORUM, ("describe", "--status")),
    (CLUSTER, ("cluster-id",)),
    (CLUSTER, ("unregister", "--id", "7")),
    (CLUSTER, ("list-endpoints",)),
]


@pytest.fixture(scope="module")
def closed_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KasparProcess]:
    """Its clients are anonymous, and have no permission."""
    folder = tmp_path_factory.mktemp("closed")
    with KasparProcess(folder, overrides={**SETTINGS, ALLOW: "true"}) as broker:
        with RawClient(broker.port) as client:
            assert client.create_topic("orders") == 0
        broker.stop()
        broker.overrides = {**SETTINGS, ALLOW: "false"}
        broker.start()
        yield broker


def _words(parameter: Command | tuple[str, ...]) -> str:
    return parameter.kafka_class.rpartition(".")[2] if isinstance(parameter, Command) else " ".join(parameter)


@pytest.mark.parametrize(("command", "arguments"), CASES, ids=_words)
def test_no_permission(
    closed_broker: KasparProcess, kafka_tools: KafkaTools, command: Command, arguments: tuple[str, ...]
) -> None:
    servers = ("--bootstrap-server", closed_broker.bootstrap)
    words = (arguments[0], *servers, *arguments[1:]) if command is CLUSTER else (*servers, *arguments)
    theirs, ours = kafka_tools.run(command.kafka_class, *words), run_ours(command, *words)
    assert "Traceback" not in ours.errors
    assert _comparable(ours) == _comparable(theirs)


def test_transaction_is_not_aborted_without_permission(closed_broker: KasparProcess) -> None:
    producer = ("--producer-id", "1", "--producer-epoch", "0", "--coordinator-epoch", "0")
    words = ("--bootstrap-server", closed_broker.bootstrap, "abort", "--topic", "orders", "--partition", "0", *producer)
    done = run_ours(TRANSACTIONS, *words)
    assert (done.code, done.output) == (1, "")
    assert done.errors.startswith("Failed to abort transaction AbortTransactionSpec(topicPartition=orders-0, ")
    assert "TOPIC_AUTHORIZATION_FAILED" in done.errors


_AT_LOOKUP = {
    r"FindCoordinator request for groupId `.*?` failed due to authorization failure": "Group authorization failed.",
    r"FindCoordinator request for transactionalId `.*?` failed due to authorization failure": (
        "Transactional Id authorization failed."
    ),
}
"""What Kafka's client says if the lookup of a coordinator is refused: it shows its own objects. Ours says the same as
for any other refusal."""


def _comparable(done: Done) -> Done:
    output, errors = (sentences(text) for text in (done.output, done.errors))
    for theirs, ours in _AT_LOOKUP.items():
        output, errors = re.sub(theirs, ours, output), re.sub(theirs, ours, errors)
    errors = re.sub(r"^\[.*?\] ERROR .*\n?", "", errors, flags=re.MULTILINE)  # what Kafka's client logs
    pattern = re.compile(r"(java\.[\w.]+Exception: )+|\S{22}(?=$|\")|127\.0\.0\.1[ :]\d+", re.MULTILINE)
    return Done(done.code, pattern.sub("", output), pattern.sub("", errors).strip())


def test_groups_and_ids_that_a_user_may_not_see(places: Places) -> None:
    def scenario(place: Place) -> None:
        topic, group = place.name_of("orders"), place.name_of("billing")
        with RawClient(place.broker.port) as client:
            assert client.create_topic(topic) == 0
        wait_until(lambda: place.broker.lead(topic, [0]), f"{topic} is led")
        with Client(place.broker.bootstrap) as client:
            assert commit_offsets(client, group, {TopicPartition(topic, 0): 0}) == {}
        user = credentials(place, "eve")
        writer = place.name_of("writer")
        with (
            denied(place, "eve", ResourceType.GROUP, group),
            denied(place, "eve", ResourceType.TRANSACTIONAL_ID, writer),
        ):
            listed = place.run_unseen(CONSUMER_GROUPS, *user, "--list")
            place.see([listed.code, group in listed.output.split()])
            for words in (
                ("--describe", "--group", group),
                ("--delete", "--group", group),
                ("--delete-offsets", "--group", group, "--topic", topic),
                ("--reset-offsets", "--group", group, "--topic", topic, "--to-latest", "--execute"),
            ):
                place.see(_comparable(place.run_unseen(CONSUMER_GROUPS, *user, *words)))
            place.see(_comparable(place.run_unseen(TRANSACTIONS, *user, "describe", "--transactional-id", writer)))

    same_at_all(places, scenario)
