"""`kaspar up --secure`: clients get in with the settings that it has written, and only so. A restart keeps it all."""

import signal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from kaspar.base.errors import KasparError
from kaspar.client import Client
from tests.integration.cluster.up import Up
from tests.integration.commands import run

SECONDS = 30
CHANGED = UserScramCredentialUpsertion("client", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), b"changed")


def acls_on(resource: ResourceType) -> AclBindingFilter:
    everything: Any = None
    return AclBindingFilter(
        resource,
        everything,
        ResourcePatternType.ANY,
        everything,
        everything,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )


def settings_of(up: Up, user: str) -> dict[str, str]:
    """As people read the file in Python."""
    file = up.folder / "clients" / f"{user}.librdkafka.properties"
    return dict(line.split("=", 1) for line in file.read_text().splitlines())


def produce(settings: dict[str, str], topic: str, value: bytes) -> None:
    problems: list[object] = []
    producer = Producer({**settings, "log_level": 0})
    producer.produce(topic, value, on_delivery=lambda error, _: problems.append(error))
    assert producer.flush(SECONDS) == 0
    assert problems == [None]


def consume(settings: dict[str, str], topic: str, count: int) -> list[bytes]:
    consumer = Consumer({**settings, "group.id": "readers", "auto.offset.reset": "earliest", "log_level": 0})
    consumer.subscribe([topic])
    found: list[bytes] = []
    while len(found) < count:
        for message in consumer.consume(count, timeout=SECONDS):
            value = message.value()
            assert message.error() is None, message.error()
            assert isinstance(value, bytes)
            found.append(value)
    consumer.close()
    return found


def test_clients_log_in_and_a_restart_keeps_everything(tmp_path: Path) -> None:
    up = Up(tmp_path / "c1", "--secure", "--override", "group.initial.rebalance.delay.ms=0")
    with up:
        up.wait_for("may create, read and write all topics")
        client, admin = settings_of(up, "client"), settings_of(up, "admin")
        assert not [each for each in (client, admin) if each["sasl.password"] in up.output.read_text()]
        assert not [
            file
            for file in (*up.folder.glob("broker-1/*.*"), up.folder / "cluster.json")
            if client["sasl.password"] in file.read_text()
        ]
        status = run("kaspar", "status", "--dir", up.folder)
        assert f"settings for clients are in {up.folder / 'clients'}" in status.stdout, status
        config = up.folder / "clients" / "client.properties"
        controller = ("kaspar", "controller", "--bootstrap-server", client["bootstrap.servers"])
        assert run(*controller, "--command-config", config).stdout == "Broker 1 is the controller.\n"
        with pytest.raises((OSError, KasparError)), Client(client["bootstrap.servers"], timeout_s=5) as stranger:
            stranger.refresh_metadata([])

        # 'client' creates, writes and reads; it does not administrate.
        clients, admins = AdminClient({**client, "log_level": 0}), AdminClient({**admin, "log_level": 0})
        clients.create_topics([NewTopic("orders", 1)])["orders"].result(SECONDS)
        produce(client, "orders", b"one")
        assert consume(client, "orders", 1) == [b"one"]
        with pytest.raises(KafkaException, match="CLUSTER_AUTHORIZATION_FAILED"):
            clients.alter_user_scram_credentials([CHANGED])["client"].result(SECONDS)
        with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
            clients.delete_topics(["orders"])["orders"].result(SECONDS)
        broker = ConfigResource(ConfigResource.Type.BROKER, "1")
        shown = admins.describe_configs([broker])[broker].result(SECONDS)
        assert shown["sasl.enabled.mechanisms"].value == "SCRAM-SHA-512"
        assert len(admins.describe_acls(acls_on(ResourceType.ANY)).result(SECONDS)) == 7

        # What an administrator changes stays: a password, and an ACL that is gone.
        admins.alter_user_scram_credentials([CHANGED])["client"].result(SECONDS)
        groups = acls_on(ResourceType.GROUP)
        assert len(admins.delete_acls([groups])[groups].result(SECONDS)) == 1
        assert run("kaspar", "stop", "--dir", up.folder).returncode == 0
        assert up.ended() == 0

        certificates = {file: file.read_bytes() for file in (up.folder / "security").iterdir()}
        up.start("--dir", str(up.folder))
        assert {file: file.read_bytes() for file in (up.folder / "security").iterdir()} == certificates
        assert settings_of(up, "admin") == admin
        produce({**client, "sasl.password": "changed"}, "orders", b"two")
        assert len(AdminClient({**admin, "log_level": 0}).describe_acls(acls_on(ResourceType.ANY)).result(SECONDS)) == 6
        up.signal(signal.SIGTERM)
        assert up.ended() == 0
        assert " ERROR " not in (up.folder / "broker-1" / "broker.log").read_text()
