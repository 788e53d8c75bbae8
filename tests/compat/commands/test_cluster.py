"""kafka-cluster, kafka-features and kafka-metadata-quorum: what they print and do, beside Kafka's."""

import re

import pytest

from tests.compat.commands.catalog import CLUSTER, FEATURES, METADATA_QUORUM
from tests.compat.commands.complaints import complaint
from tests.compat.commands.places import Place, Places, same_at_all
from tests.compat.tools.comparing import Command, run_ours
from tests.peers.kafka import ApacheKafka
from tests.peers.kafka_tools import KafkaTools

NOBODY = "127.0.0.1:1"
DIRECTORY = "gT5ajU5xT5OGEw961POH7Q"


# --- kafka-cluster ----------------------------------------------------------------------------------------------------


def test_cluster_is_described(places: Places) -> None:
    def scenario(place: Place) -> None:
        place.mask(r"Cluster ID: \S{22}", "Cluster ID: ID")
        place.mask(r"127.0.0.1 \d+ +", "HOST PORT ")
        place.mask(r"^\[.*?\] ERROR .*\n?", "")
        place.run(CLUSTER, "cluster-id", *place.servers)
        place.run(CLUSTER, "cluster-id", "-b", place.broker.bootstrap, "--config", place.file(""))
        place.run(CLUSTER, "cluster-id", *place.servers, "-c", place.file(""))
        place.run(CLUSTER, "list-endpoints", *place.servers)
        place.run(CLUSTER, "list-endpoints", *place.servers, "--include-fenced-brokers")
        assert place.run_unseen(CLUSTER, "unregister", *place.servers, "--id", "77").errors.splitlines()[-1:]

    same_at_all(places, scenario)


def test_broker_that_is_not_registered_cannot_be_unregistered(places: Places) -> None:
    for place in places:
        done = place.run_unseen(CLUSTER, "unregister", *place.servers, "-i", "77")
        assert (done.code, done.output) == (1, "")
        assert "BrokerIdNotRegisteredException: Broker ID 77 is not currently registered" in done.errors


def test_controllers_are_asked(apache_kafka: ApacheKafka, kafka_tools: KafkaTools) -> None:
    controllers = f"127.0.0.1:{apache_kafka.controller_port}"
    for command, arguments in (
        (CLUSTER, ("cluster-id", "-C", controllers)),
        (CLUSTER, ("list-endpoints", "-C", controllers)),
        (CLUSTER, ("list-endpoints", "-C", apache_kafka.bootstrap)),
        (CLUSTER, ("list-endpoints", "-C", controllers, "--include-fenced-brokers")),
        (METADATA_QUORUM, ("--bootstrap-controller", controllers, "describe", "--replication", "--status")),
    ):
        theirs, ours = kafka_tools.run(command.kafka_class, *arguments), run_ours(command, *arguments)
        assert complaint(ours) == complaint(theirs)
    features = ("--bootstrap-controller", controllers, "describe")
    theirs, ours = kafka_tools.run(FEATURES.kafka_class, *features), run_ours(FEATURES, *features)
    assert _without_epoch(ours.output) == _without_epoch(theirs.output) != ""
    status = run_ours(METADATA_QUORUM, "--bootstrap-controller", controllers, "describe", "--status")
    assert f'"endpoints": ["CONTROLLER://{controllers}"]' in status.output


def _without_epoch(text: str) -> str:
    return re.sub(r"Epoch: \d+", "Epoch: N", text)


# --- kafka-features ---------------------------------------------------------------------------------------------------


def test_features_are_described_and_changed(places: Places) -> None:
    kafka, ours, _ = places

    def scenario(place: Place) -> None:
        place.mask(r"Epoch: \d+", "Epoch: N")
        place.run(FEATURES, *place.servers, "describe")
        place.run(FEATURES, *place.servers, "describe", "--node-id", "1")
        for words in (
            ("upgrade", "--feature", "nothing.such=1"),
            ("upgrade", "--feature", "transaction.version=9"),
            ("upgrade", "--feature", "transaction.version=1"),
            ("upgrade", "--feature", "transaction.version=2", "--metadata", "4.3-IV0"),
            ("upgrade", "--release-version", "4.3", "--dry-run"),
            ("downgrade", "--feature", "transaction.version=1", "--feature", "group.version=0", "--dry-run"),
            ("downgrade", "--feature", "transaction.version=1", "--feature", "nothing.such=0"),
            ("downgrade", "--metadata", "3.9-IV0", "--unsafe", "--dry-run"),
            ("disable", "--feature", "group.version", "--dry-run"),
            ("disable", "--feature", "nothing.such", "--unsafe", "--dry-run"),
            ("disable", "--feature", "metadata.version", "--unsafe", "--dry-run"),
        ):
            place.run(FEATURES, *place.servers, *words)

    same_at_all((kafka, ours), scenario)


def test_features_of_both_kinds_of_brokers(places: Places) -> None:
    """Apache Kafka has more: of those that both have, the same is said."""

    def scenario(place: Place) -> None:
        place.run(FEATURES, *place.servers, "upgrade", "--feature", "transaction.version=2")
        place.run(FEATURES, *place.servers, "disable", "--feature", "group.version", "--dry-run")
        shown = place.run_unseen(FEATURES, *place.servers, "describe").output.splitlines()
        place.see([line.partition("Epoch")[0] for line in shown if "group.version" in line])

    same_at_all(places, scenario)


FEATURES_WITHOUT_CLUSTER = [
    ("describe",),
    ("--bootstrap-server", NOBODY, "--bootstrap-controller", NOBODY, "describe"),
    ("--bootstrap-server", NOBODY, "describe", "--node-id", "x"),
    ("--bootstrap-server", NOBODY, "describe", "more"),
    ("--bootstrap-server", NOBODY, "upgrade"),
    ("--bootstrap-server", NOBODY, "disable"),
    *(
        ("--bootstrap-server", NOBODY, "upgrade", *words)
        for words in (
            ("--feature", "x"),
            ("--feature", "x=y"),
            ("--feature", "x=1", "--feature", "x=2"),
            ("--metadata", "odd"),
            ("--release-version", "odd"),
            ("--release-version", "4.3", "--feature", "x=1"),
            ("--metadata", "4.3-IV0", "--feature", "metadata.version=3"),
        )
    ),
    ("odd",),
    ("version-mapping",),
    *(
        ("version-mapping", "--release-version", release)
        for release in ("3.3-IV3", "3.9", "4.0.1", "4.1", "4.4-IV0", "4.4")
    ),
    ("feature-dependencies",),
    *(
        ("feature-dependencies", "--feature", level)
        for level in (
            "transaction.version=2",
            "metadata.version=25",
            "eligible.leader.replicas.version=1",
            "metadata.version=99",
            "share.version=2",
            "odd=1",
            "odd",
        )
    ),
]


@pytest.mark.parametrize("arguments", FEATURES_WITHOUT_CLUSTER, ids=" ".join)
def test_features_without_a_cluster(kafka_tools: KafkaTools, arguments: tuple[str, ...]) -> None:
    theirs, ours = kafka_tools.run(FEATURES.kafka_class, *arguments), run_ours(FEATURES, *arguments)
    assert complaint(ours) == complaint(theirs)


# --- kafka-metadata-quorum --------------------------------------------------------------------------------------------


def test_quorum_is_described(places: Places) -> None:
    def scenario(place: Place) -> None:
        place.mask(r"ClusterId: +\S{22}", "ClusterId: ID")
        place.mask(r"(HighWatermark: +)\d+", r"\1N")
        place.mask(r'"directoryId": "\S{22}", ', "")  # a cluster of Kaspar has no directory of a quorum
        place.mask(
            r'"endpoints": \["\w+://[^]]*\]', '"endpoints": [LISTENERS]'
        )  # a Kaspar controller has those of a broker
        place.mask(r"^1 +\t\S{22}\t\d+ *\t0  \t(\d{13}|\d+ ms ago) *\t(\d{13}|\d+ ms ago) *\t", "1 ID N 0 TIME TIME ")
        place.mask(r"^NodeId.*$", "COLUMNS")  # as wide as the numbers in them
        for words in (("--status",), ("--replication",), ("--replication", "--human-readable"), ()):
            place.run(METADATA_QUORUM, *place.servers, "describe", *words)
        for words in (("--status", "--replication"), ("--status", "--human-readable")):
            place.run(METADATA_QUORUM, *place.servers, "describe", *words)
        removal = ("remove-controller", "--controller-id", "3", "--controller-directory-id", DIRECTORY)
        place.run(METADATA_QUORUM, *place.servers, *removal, "--dry-run")

    same_at_all(places, scenario)


def test_changes_of_the_quorum_are_refused(places: Places) -> None:
    kafka, ours, on_kafka = places

    def scenario(place: Place) -> None:
        for words in (("-i", "3", "-d", DIRECTORY), ("-i", "-1", "-d", DIRECTORY)):
            place.run(METADATA_QUORUM, *place.servers, "remove-controller", *words)
        place.run(METADATA_QUORUM, *place.servers, "add-controller")
        for settings in ("", "node.id=3\n", "node.id=-3\n", "node.id=3\nprocess.roles=controller\n"):
            config = place.file(settings, "controller")
            place.run(METADATA_QUORUM, *place.servers, "--command-config", config, "add-controller")
        folder = place.folder / f"data-{place.name_of('x')}"
        folder.mkdir()
        settings = f"node.id=3\nprocess.roles=controller\nlog.dirs={folder}\n"
        place.run(
            METADATA_QUORUM, *place.servers, "--command-config", place.file(settings, "controller"), "add-controller"
        )
        (folder / "meta.properties").write_text(
            f"version=1\nnode.id=3\ncluster.id={DIRECTORY}\ndirectory.id={DIRECTORY}\n"
        )
        for more in ("", "controller.listener.names=C\n", "controller.listener.names=C\nlisteners=C://localhost:5\n"):
            config = place.file(settings + more, "controller")
            place.run(METADATA_QUORUM, *place.servers, "--command-config", config, "add-controller")
            place.run(METADATA_QUORUM, *place.servers, "--command-config", config, "add-controller", "--dry-run")

    same_at_all((kafka, ours), scenario)
    removal = ("remove-controller", "-i", "3", "-d", DIRECTORY)
    refused = on_kafka.run_unseen(METADATA_QUORUM, *on_kafka.servers, *removal)
    assert (refused.code, refused.output) == (1, "")
    assert "org.apache.kafka.common.errors.UnsupportedVersionException: " in refused.errors  # its voters are static


# --- wrong options, and no broker -------------------------------------------------------------------------------------


def _words(parameter: Command | tuple[str, ...]) -> str:
    return parameter.kafka_class.rpartition(".")[2] if isinstance(parameter, Command) else " ".join(parameter)


WRONG = [
    (CLUSTER, ()),
    (CLUSTER, ("odd",)),
    (CLUSTER, ("cluster-id",)),
    (CLUSTER, ("cluster-id", "-b", NOBODY, "-C", NOBODY)),
    (CLUSTER, ("unregister", "-b", NOBODY)),
    (CLUSTER, ("unregister", "-b", NOBODY, "-i", "x")),
    (METADATA_QUORUM, ("describe",)),
    (METADATA_QUORUM, ("--bootstrap-server", NOBODY, "remove-controller", "-i", "3")),
    (METADATA_QUORUM, ("--bootstrap-server", NOBODY, "odd")),
]


@pytest.mark.parametrize(("command", "arguments"), WRONG, ids=_words)
def test_wrong_options(kafka_tools: KafkaTools, command: Command, arguments: tuple[str, ...]) -> None:
    theirs, ours = kafka_tools.run(command.kafka_class, *arguments), run_ours(command, *arguments)
    assert complaint(ours) == complaint(theirs)


UNREACHABLE = [
    (CLUSTER, ("cluster-id", "-b", NOBODY, "-c")),
    (CLUSTER, ("unregister", "-i", "1", "-b", NOBODY, "-c")),
    (FEATURES, ("--bootstrap-server", NOBODY, "describe", "--command-config")),
    (FEATURES, ("--bootstrap-server", NOBODY, "upgrade", "--feature", "x=1", "--command-config")),
    (METADATA_QUORUM, ("--bootstrap-server", NOBODY, "describe", "--status", "--command-config")),
    (METADATA_QUORUM, ("--bootstrap-server", NOBODY, "describe", "--replication", "--command-config")),
]


@pytest.mark.parametrize(("command", "arguments"), UNREACHABLE, ids=_words)
def test_no_broker_reachable(places: Places, command: Command, arguments: tuple[str, ...]) -> None:
    def scenario(place: Place) -> None:
        config = str(place.file("default.api.timeout.ms=300\nrequest.timeout.ms=200\n"))
        words = [*arguments, config]
        if command is not CLUSTER:  # the option is one of the command, before those of the subcommand
            words = ["--command-config", config, *arguments[:-1]]
        place.run(command, *words)

    kafka, ours, _ = places
    same_at_all((kafka, ours), scenario)
