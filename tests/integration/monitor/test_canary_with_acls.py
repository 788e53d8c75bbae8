"""The canary of a user who may do what docs/canary.md says, and of one who may not."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from kaspar.monitor.canary import CanaryStatus
from kaspar.supervisor.ports import free_ports
from kaspar.testing import Broker
from tests.integration.monitor.running_canary import RunningCanary
from tests.integration.monitor.test_canary import TOPIC, assert_nothing_is_wrong

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    listener = f"SASL_PLAINTEXT://127.0.0.1:{next(free_ports())}"
    users = " ".join(f'user_{name}="secret"' for name in ("admin", "canary", "guest"))
    overrides = {
        "listeners": listener,
        "advertised.listeners": listener,
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
            f'{MODULE} username="admin" password="secret" {users};'
        ),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin",
    }
    folder: Path = tmp_path_factory.mktemp("broker")
    with Broker(data_dir=folder, process=True, overrides=overrides) as broker:
        allow(broker, "canary", (AclOperation.WRITE, AclOperation.READ, AclOperation.DESCRIBE, AclOperation.CREATE))
        yield broker


def allow(broker: Broker, user: str, operations: tuple[AclOperation, ...]) -> None:
    admin = AdminClient(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "admin",
            "sasl.password": "secret",
        }
    )
    bindings = [
        AclBinding(
            ResourceType.TOPIC,
            TOPIC,
            ResourcePatternType.LITERAL,
            f"User:{user}",
            "*",
            operation,
            AclPermissionType.ALLOW,
        )
        for operation in operations
    ]
    for created in admin.create_acls(bindings).values():
        created.result(30)


def canary_of(broker: Broker, user: str) -> RunningCanary:
    client = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{MODULE} username="{user}" password="secret";',
    }
    return RunningCanary(broker.bootstrap_servers, client=client)


def test_rights_on_the_topic_are_enough_for_one_broker(broker: Broker) -> None:
    with canary_of(broker, "canary") as canary:
        report = canary.wait_healthy(1)
        assert report.topics_created == 1
        assert not report.problem
        assert_nothing_is_wrong(report)


def test_canary_without_rights_is_unavailable_and_says_why(broker: Broker) -> None:
    with canary_of(broker, "guest") as canary:
        report = canary.wait(lambda found: found.status is CanaryStatus.UNAVAILABLE, "nothing is allowed")
        assert "AUTHORIZATION_FAILED" in report.problem
