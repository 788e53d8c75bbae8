"""kafka-configs: topics, brokers, groups, client-metrics subscriptions, quotas and SCRAM credentials."""

from uuid import UUID

import pytest

from kaspar.acls.acl import CLUSTER_NAME, ResourceType
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.creation import NewTopic, create_topics
from kaspar.client.admin.group_offsets import alter_group_offsets
from kaspar.client.admin.session import Admin
from tests.compat.commands.catalog import CONFIGS
from tests.compat.commands.places import Place, Places, same_at_all
from tests.compat.commands.secured import credentials, denied
from tests.compat.commands.settling import settle
from tests.peers.kafka import ApacheKafka

NOWHERE = ("--bootstrap-server", "127.0.0.1:1")


def configs(place: Place, *words: str, in_order: bool = True) -> None:
    place.run(CONFIGS, *place.servers, *words, in_order=in_order)
    if "--alter" in words:
        settle(place)


def create_topic(place: Place, name: str) -> str:
    topic = place.name_of(name)
    with Admin(place.broker.bootstrap) as admin:
        assert isinstance(create_topics(admin, [NewTopic(topic)])[topic], UUID)
    settle(place)
    return topic


def test_settings_of_topics(places: Places) -> None:
    def scenario(place: Place) -> None:
        topic = create_topic(place, "orders")
        configs(place, "--describe", "--topic", topic)
        configs(place, "--alter", "--topic", topic, "--add-config", "retention.ms=1000,cleanup.policy=[compact,delete]")
        configs(place, "--describe", "--topic", topic)
        configs(place, "--describe", "--entity-type", "topics", "--entity-name", topic)
        configs(
            place,
            "--alter",
            "--topic",
            topic,
            "--delete-config",
            "retention.ms,segment.ms",
            "--add-config",
            "flush.ms=5",
        )
        configs(place, "--describe", "--topic", topic, "--all")
        file = place.file("segment.ms = 60000\n# a comment\nflush.ms: 7\n")
        configs(place, "--alter", "--topic", topic, "--add-config-file", str(file))
        configs(place, "--describe", "--topic", topic)

    same_at_all(places, scenario)


def test_all_topics_are_described(places: Places) -> None:
    def scenario(place: Place) -> None:
        topic = create_topic(place, "orders")
        configs_of = place.run_unseen(CONFIGS, *place.servers, "--describe", "--entity-type", "topics").output
        place.see(f"Dynamic configs for topic {topic} are:\n" in configs_of)

    same_at_all(places, scenario)


def test_refused_settings_of_topics(places: Places) -> None:
    def scenario(place: Place) -> None:
        topic = create_topic(place, "orders")
        for added in ("zork=1", "retention.ms=abc", "retention.ms", "ret/ention=1", "", "a=b=c"):
            configs(place, "--alter", "--topic", topic, "--add-config", added)
        configs(place, "--alter", "--topic", place.name_of("unknown"), "--add-config", "retention.ms=1")
        configs(place, "--describe", "--topic", place.name_of("unknown"))
        configs(place, "--describe", "--topic", "no topic")
        configs(place, "--describe", "--topic", "")

    same_at_all(places, scenario)


def test_settings_of_brokers(places: Places) -> None:
    """The one of these that other tests of the shared brokers could notice is the size of messages."""

    def scenario(place: Place) -> None:
        changed = "log.cleaner.threads=2,message.max.bytes=1048589,ssl.keystore.password=secret"
        configs(place, "--alter", "--broker", "1", "--add-config", changed)
        configs(place, "--alter", "--broker-defaults", "--add-config", "message.max.bytes=1048590")
        for entity in (["--broker", "1"], ["--broker-defaults"], ["--entity-type", "brokers"]):
            configs(place, "--describe", *entity)
        configs(place, "--describe", "--entity-type", "brokers", "--entity-default", "--all")
        deleted = "log.cleaner.threads,message.max.bytes,ssl.keystore.password"
        configs(place, "--alter", "--entity-type", "brokers", "--entity-name", "1", "--delete-config", deleted)
        configs(
            place, "--alter", "--entity-type", "brokers", "--entity-default", "--delete-config", "message.max.bytes"
        )
        configs(place, "--describe", "--broker", "1")
        configs(place, "--describe", "--broker", "77")
        configs(place, "--alter", "--broker", "1", "--add-config", "broker.id=5")

    same_at_all(places, scenario)


def test_all_settings_of_brokers(places: Places) -> None:
    """Of our broker: Apache Kafka's has others."""

    def scenario(place: Place) -> None:
        configs(place, "--describe", "--broker", "1", "--all")
        configs(place, "--describe", "--entity-type", "brokers", "--all")

    same_at_all(places[:2], scenario)


def test_levels_of_loggers(places: Places) -> None:
    """The loggers are those of the broker, so only `root` is known to both."""

    def scenario(place: Place) -> None:
        described = place.run_unseen(CONFIGS, *place.servers, "--describe", "--broker-logger", "1").output.splitlines()
        place.see(described[0])
        (level,) = [line.split()[0].partition("=")[2] for line in described if line.startswith("  root=")]
        configs(place, "--alter", "--broker-logger", "1", "--add-config", f"root={level}")
        configs(place, "--alter", "--broker-logger", "1", "--add-config", "zork=INFO")
        configs(place, "--alter", "--broker-logger", "1", "--delete-config", "zork")
        configs(place, "--describe", "--broker-logger", "77")

    same_at_all(places, scenario)


def test_settings_of_groups(places: Places) -> None:
    def scenario(place: Place) -> None:
        group = place.name_of("group")
        configs(place, "--describe", "--group", group)
        configs(place, "--alter", "--group", group, "--add-config", "consumer.session.timeout.ms=50000")
        configs(place, "--describe", "--group", group)
        configs(place, "--describe", "--group", group, "--all")
        configs(place, "--alter", "--group", group, "--delete-config", "consumer.session.timeout.ms")
        configs(place, "--alter", "--group", group, "--add-config", "zork=1")

    same_at_all(places, scenario)


def test_a_group_without_settings(places: Places) -> None:
    def scenario(place: Place) -> None:
        group = place.name_of("group")
        where = TopicPartition(create_topic(place, "orders"), 0)
        with Admin(place.broker.bootstrap) as admin:
            assert alter_group_offsets(admin, group, {where: 0}) == {where: None}
        configs(place, "--describe", "--group", group)
        everything = place.run_unseen(CONFIGS, *place.servers, "--describe", "--entity-type", "groups").output
        place.see(f"Dynamic configs for group {group} are:\n" in everything)

    same_at_all(places, scenario)


def test_settings_of_client_metrics(places: Places) -> None:
    def scenario(place: Place) -> None:
        name = place.name_of("metrics")
        configs(place, "--describe", "--client-metrics", name)
        configs(place, "--alter", "--client-metrics", name, "--add-config", "interval.ms=1000,metrics=[org.a,org.b]")
        configs(place, "--describe", "--client-metrics", name)
        configs(place, "--describe", "--client-metrics", name, "--all")
        configs(place, "--alter", "--client-metrics", name, "--delete-config", "interval.ms,metrics")
        configs(place, "--alter", "--client-metrics", name, "--add-config", "interval.ms=1")

    same_at_all(places, scenario)


def test_quotas(places: Places) -> None:
    def scenario(place: Place) -> None:
        user, client, ip = place.name_of("user"), place.name_of("client"), "127.0.9.9"
        configs(place, "--alter", "--user", user, "--add-config", "producer_byte_rate=1024,consumer_byte_rate=10000000")
        configs(place, "--alter", "--user", user, "--client", client, "--add-config", "request_percentage=0.5")
        both = ("--entity-type", "users", "--entity-name", user, "--entity-type", "clients")
        configs(place, "--alter", *both, "--entity-default", "--add-config", "controller_mutation_rate=1e-5")
        configs(place, "--alter", "--client", client, "--add-config", "request_percentage=50")
        configs(place, "--alter", "--ip", ip, "--add-config", "connection_creation_rate=10000")
        configs(place, "--alter", "--ip-defaults", "--add-config", "connection_creation_rate=20000")
        described = (["--user", user], ["--user", user, "--client", client], ["--client", client], ["--ip", ip])
        for entities in (*described, ["--ip-defaults"], ["--user", "nobody"], both, ["--entity-type", "ips"]):
            configs(place, "--describe", *entities, in_order=False)
        configs(place, "--alter", "--user", user, "--delete-config", "request_percentage")
        configs(place, "--alter", "--user", user, "--delete-config", "producer_byte_rate,consumer_byte_rate")
        configs(place, "--alter", "--ip", ip, "--delete-config", "connection_creation_rate")
        configs(place, "--alter", "--ip-defaults", "--delete-config", "connection_creation_rate")
        configs(place, "--describe", "--user", user)

    same_at_all(places, scenario)


def test_default_quotas(places: Places) -> None:
    """Of users and clients, which count for everybody: too high to be noticed, and deleted at once."""

    def scenario(place: Place) -> None:
        added = ("--add-config", "producer_byte_rate=1e15")
        for defaults in (["--user-defaults"], ["--client-defaults"], ["--user-defaults", "--client-defaults"]):
            configs(place, "--alter", *defaults, *added)
            configs(place, "--describe", *defaults)
            configs(place, "--alter", *defaults, "--delete-config", "producer_byte_rate")

    same_at_all(places, scenario)


@pytest.mark.parametrize(
    "words",
    [
        ("--user", "u", "--add-config", "producer_byte_rate=abc"),
        ("--user", "u", "--add-config", "producer_byte_rate=-1"),
        ("--user", "u", "--add-config", "producer_byte_rate=1.5"),
        ("--user", "u", "--add-config", "connection_creation_rate=1"),
        ("--user", "u", "--delete-config", "zork,zork.zork"),
        ("--client", "c", "--add-config", "SCRAM-SHA-256=[password=a]"),
        ("--client", "c", "--delete-config", "SCRAM-SHA-256"),
        ("--ip", "127.0.9.8", "--add-config", "producer_byte_rate=1"),
        ("--ip", "127.0.9.8", "--delete-config", "connection_creation_rate"),
        ("--user", "u", "--add-config", "SCRAM-SHA-256=[password=a],producer_byte_rate=1"),
        ("--user-defaults", "--add-config", "SCRAM-SHA-256=[password=a]"),
        ("--user", "u", "--add-config", "SCRAM-SHA-256=[zork]"),
        ("--user", "u", "--add-config", "SCRAM-SHA-256=[password=]"),
        ("--user", "u", "--add-config", "SCRAM-SHA-256=[iterations=1,password=a]"),
        ("--user", "u", "--add-config", "SCRAM-SHA-256=[iterations=100000,password=a]"),
        ("--user", "u", "--add-config", "SCRAM-SHA-256=[password=a],SCRAM-SHA-512=[password=a]"),
        ("--user", "u", "--delete-config", "SCRAM-SHA-256"),
    ],
    ids=" ".join,
)
def test_refused_quotas_and_credentials(places: Places, words: tuple[str, ...]) -> None:
    same_at_all(places, lambda place: configs(place, "--alter", *words))


def test_scram_credentials(places: Places) -> None:
    def scenario(place: Place) -> None:
        user = place.name_of("user")
        configs(
            place, "--alter", "--user", user, "--add-config", "SCRAM-SHA-256=[iterations=8192,password=alice-secret]"
        )
        configs(place, "--alter", "--user", user, "--add-config", "SCRAM-SHA-512=[password=alice-secret]")
        configs(place, "--alter", "--user", user, "--add-config", "producer_byte_rate=1024")
        configs(place, "--describe", "--user", user)
        everybody = place.run_unseen(CONFIGS, *place.servers, "--describe", "--entity-type", "users").output
        place.see([line for line in everybody.splitlines() if user in line])
        for config in ("SCRAM-SHA-256", "SCRAM-SHA-512", "producer_byte_rate"):
            configs(place, "--alter", "--user", user, "--delete-config", config)
        configs(place, "--describe", "--user", user)

    same_at_all(places, scenario)


@pytest.mark.parametrize(
    "words",
    [
        ("--describe",),
        ("--topic", "t"),
        ("--alter", "--describe", "--topic", "t"),
        ("--describe", "--topic", "t", "--add-config", "a=b"),
        ("--describe", "--topic", "t", "--delete-config", "a"),
        ("--describe", "--topic", "t", "--broker", "1"),
        ("--describe", "--topic", "t", "--entity-type", "topics"),
        ("--describe", "--topic", "t", "--entity-name", "t"),
        ("--describe", "--topic", "t", "--topic", "u"),
        ("--describe", "--entity-type", "zork"),
        ("--describe", "--entity-type", "topics", "--entity-type", "topics"),
        ("--describe", "--entity-type", "topics", "--entity-default"),
        ("--describe", "--entity-type", "broker-loggers"),
        ("--describe", "--broker-logger", ""),
        ("--desc", "--topic", "t"),
        ("--describe", "--broker", "x"),
        ("--describe", "--ip", "no..host"),
        ("--describe", "--bootstrap-controller", "127.0.0.1:1", "--topic", "t"),
        ("--alter", "--topic", "t"),
        ("--alter", "--entity-type", "users", "--add-config", "a=b"),
        ("--alter", "--entity-type", "topics", "--add-config", "a=b"),
        ("--alter", "--topic", "t", "--add-config", "a=b", "--add-config-file", "f"),
    ],
    ids=" ".join,
)
def test_wrong_options(places: Places, words: tuple[str, ...]) -> None:
    same_at_all(places[:2], lambda place: place.run(CONFIGS, *NOWHERE, *words))


def test_names_and_types_that_do_not_match(places: Places) -> None:
    def scenario(place: Place) -> None:
        names = ("--entity-type", "users", "--entity-name", "a", "--entity-name", "b")
        configs(place, "--describe", *names)
        configs(place, "--alter", *names, "--add-config", "producer_byte_rate=1")
        place.run(CONFIGS, "--describe", "--topic", "t")

    same_at_all(places, scenario)


def test_no_broker(places: Places) -> None:
    def scenario(place: Place) -> None:
        soon = place.file("default.api.timeout.ms=300\nrequest.timeout.ms=300\n")
        place.run(CONFIGS, *NOWHERE, "--command-config", soon, "--describe", "--topic", "t")

    same_at_all(places[:2], scenario)


def test_no_permission(places: Places) -> None:
    def scenario(place: Place) -> None:
        topic, user = create_topic(place, "orders"), credentials(place, "carol")
        place.run(CONFIGS, *user, "--describe", "--topic", topic)
        with denied(place, "carol", ResourceType.TOPIC, topic):
            place.run(CONFIGS, *user, "--describe", "--topic", topic)
            place.run(CONFIGS, *user, "--describe", "--topic", topic, "--all")
            place.run(CONFIGS, *user, "--alter", "--topic", topic, "--add-config", "retention.ms=1")
        with denied(place, "carol", ResourceType.CLUSTER, CLUSTER_NAME):
            place.mask(r"Request Request\(.*", "Cluster authorization failed.")  # Apache Kafka's brokers describe it
            place.run(CONFIGS, *user, "--describe", "--broker", "1")
            place.run(CONFIGS, *user, "--describe", "--group", "nobody")
            place.run(CONFIGS, *user, "--describe", "--user", "nobody")
            place.run(CONFIGS, *user, "--alter", "--user", "nobody", "--add-config", "producer_byte_rate=1")
            place.run(CONFIGS, *user, "--alter", "--user", "nobody", "--add-config", "SCRAM-SHA-256=[password=a]")

    same_at_all(places, scenario)


def test_controllers(places: Places, apache_kafka: ApacheKafka) -> None:
    """Of Apache Kafka: our brokers have no endpoints of controllers."""

    def scenario(place: Place) -> None:
        topic = create_topic(place, "orders")
        controllers = ("--bootstrap-controller", f"{apache_kafka.host}:{apache_kafka.controller_port}")
        place.run(CONFIGS, *controllers, "--alter", "--topic", topic, "--add-config", "retention.ms=1000")
        settle(place)
        place.run(CONFIGS, *controllers, "--describe", "--topic", topic, "--all")
        place.run(CONFIGS, *controllers, "--describe", "--topic", topic)
        place.run(CONFIGS, *controllers, "--describe", "--broker", "1")
        place.run(CONFIGS, *controllers, "--describe", "--user", "alice")

    kafkas, _, ours = places
    kafkas.broker = apache_kafka
    same_at_all((kafkas, ours), scenario)
