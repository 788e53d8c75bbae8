"""The caller's identity reaches the broker, whose ACLs decide."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from kaspar.serialization.errors import RegistryError
from kaspar.serialization.mock_registry import drop_mock_registry
from kaspar.serialization.registry_client import RegistryClient
from kaspar.serialization.registry_config import registry_config
from kaspar.testing import Broker
from tests.integration.rest.api import Api
from tests.integration.rest.serving import RunningRest
from tests.integration.rest.v3 import V3
from tests.peers.wire import free_port

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
USERS = {"alice": 'alice\'s "secret"', "bob": "back\\slash"}
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
UNSECURED = (
    "org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
)
TOPICS = ("hers", "his")
REGISTRY = "mock://identities"


def token_of(name: str) -> str:
    """An unsecured JWT, which Kafka takes for development."""
    claims = {"sub": name, "iat": 0, "exp": 4_000_000_000}
    parts = ({"alg": "none"}, claims)
    return ".".join(base64.urlsafe_b64encode(json.dumps(each).encode()).decode().rstrip("=") for each in parts) + "."


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


@pytest.fixture(scope="module")
def secured() -> Iterator[str]:
    """The address of a broker where alice may use one topic and bob another. Administration is open to this test."""
    from confluent_kafka.admin import (
        AclBinding,
        AclOperation,
        AclPermissionType,
        AdminClient,
        NewTopic,
        ResourcePatternType,
        ResourceType,
    )

    port, open_port = free_port(), free_port()
    users = " ".join(f'user_{name}="{_quoted(password)}"' for name, password in USERS.items())
    listeners = f"SASL_PLAINTEXT://127.0.0.1:{port},PLAINTEXT://127.0.0.1:{open_port}"
    overrides = {
        "listeners": listeners,
        "advertised.listeners": listeners,
        "sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{PLAIN} {users};",
        "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": f"{OAUTH};",
        "listener.name.sasl_plaintext.oauthbearer.sasl.server.callback.handler.class": UNSECURED,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "group.initial.rebalance.delay.ms": "0",
    }
    with Broker(process=True, overrides=overrides):
        admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{open_port}", "log_level": 0})
        for future in admin.create_topics([NewTopic(name, num_partitions=1) for name in TOPICS]).values():
            future.result()
        acls = [
            AclBinding(kind, name, ResourcePatternType.LITERAL, f"User:{user}", "*", operation, AclPermissionType.ALLOW)
            for kind, name, user, operation in (
                (ResourceType.TOPIC, "hers", "alice", AclOperation.ALL),
                (ResourceType.GROUP, "readers", "alice", AclOperation.ALL),
                (ResourceType.TOPIC, "his", "bob", AclOperation.ALL),
                (ResourceType.TOPIC, "hers", "bob", AclOperation.DESCRIBE),
            )
        ]
        for future in admin.create_acls(acls).values():
            future.result()
        yield f"127.0.0.1:{port}"


def settings(secured: str, folder: Path, method: str) -> dict[str, str]:
    credentials = folder / "credentials"
    secrets = USERS if method == "BASIC" else {name: token_of(name) for name in USERS}
    credentials.write_text("".join(f"{name}:{secret}\n" for name, secret in secrets.items()))
    return {
        "bootstrap.servers": secured,
        "schema.registry.url": REGISTRY,
        "client.security.protocol": "SASL_PLAINTEXT",
        "client.sasl.mechanism": "PLAIN",
        "authentication.method": method,
        "kaspar.http.credentials.file": str(credentials),
        "kaspar.propagate.identity": "true",
    }


@pytest.fixture(params=["BASIC", "BEARER"])
def callers(request: pytest.FixtureRequest, secured: str, tmp_path: Path) -> Iterator[dict[str, Api]]:
    with RunningRest(settings(secured, tmp_path, request.param)) as rest:
        clients = {}
        for name, password in USERS.items():
            if request.param == "BASIC":
                clients[name] = httpx.Client(base_url=rest.url, timeout=30, auth=(name, password))
            else:
                headers = {"authorization": f"Bearer {token_of(name)}"}
                clients[name] = httpx.Client(base_url=rest.url, timeout=30, headers=headers)
        yield {name: Api(client) for name, client in clients.items()}
        for client in clients.values():
            client.close()


def test_each_caller_has_their_own_permissions(callers: dict[str, Api]) -> None:
    alice, bob = callers["alice"], callers["bob"]
    assert alice.client.get("/topics").json() == ["hers"]
    assert bob.client.get("/topics").json() == ["hers", "his"]
    alice.write("hers", "hello")
    bob.write("his", "hello")
    refused = alice.produce("his", {"records": [{"value": 1}]}, "json")
    assert (refused.status_code, refused.json()["error_code"]) in {(403, 40301), (404, 40401)}
    described_only = bob.produce("hers", {"records": [{"value": 1}]}, "json")
    assert described_only.status_code == 403
    assert described_only.json()["offsets"][0]["error_code"] == 40301
    alice.write("hers", "still")


def test_version_3_reaches_brokers_as_its_caller(callers: dict[str, Api]) -> None:
    alice, bob = V3(callers["alice"].client), V3(callers["bob"].client)
    assert [each["topic_name"] for each in alice.get("/topics")["data"]] == ["hers"]
    assert [each["topic_name"] for each in bob.get("/topics")["data"]] == ["hers", "his"]
    assert bob.get("/topics/hers", include_authorized_operations="true")["authorized_operations"] == ["DESCRIBE"]
    record = {"value": {"type": "JSON", "data": 1}}
    assert [each["error_code"] for each in alice.produce("hers", record, record)] == [200, 200]
    assert [each["error_code"] for each in bob.produce("hers", record, record)] == [40301, 40301]
    refused = bob.request("DELETE", "/topics/hers")
    assert (refused.status_code, refused.json()["error_code"]) == (403, 40301)


@pytest.fixture
def registry() -> Iterator[RegistryClient]:
    yield RegistryClient(registry_config({"schema.registry.url": REGISTRY}))
    drop_mock_registry("identities")


def test_a_schema_is_registered_for_those_who_may_write_the_topic(
    callers: dict[str, Api], registry: RegistryClient
) -> None:
    """Under subjects of the topic: the registry sees the proxy, not the caller."""
    alice, bob = callers["alice"], callers["bob"]
    schema = {"value_schema": '"int"', "records": [{"value": None}]}  # which others can read
    value = {"type": "AVRO", "schema": '"int"', "data": None}
    refused = bob.produce("hers", schema, "avro")
    assert (refused.status_code, refused.json()["error_code"]) == (403, 40301)
    assert [each["error_code"] for each in V3(bob.client).produce("hers", {"value": value})] == [40301]
    elsewhere = {"value": value | {"subject": "theirs-value"}}
    assert [each["error_code"] for each in V3(alice.client).produce("hers", elsewhere)] == [40301]
    for subject in ("hers-value", "theirs-value"):
        with pytest.raises(RegistryError):
            registry.latest(subject)
    assert alice.produce("hers", schema, "avro").status_code == 200
    assert [each["error_code"] for each in V3(alice.client).produce("hers", {"value": value})] == [200]
    assert registry.latest("hers-value").schema.text == '"int"'


def test_an_instance_belongs_to_its_creator(callers: dict[str, Api]) -> None:
    alice, bob = callers["alice"], callers["bob"]
    alice.write("hers", "hello")
    instance = alice.instance("readers")
    instance.subscribe("hers")
    assert instance.read(1)[0]["value"] == "hello"
    stranger = bob.client.get(f"{instance.uri}/subscription")
    assert (stranger.status_code, stranger.json()["error_code"]) == (404, 40403)
    outsider = bob.instance("readers")
    outsider.subscribe("his")
    refused = outsider.get("/records")
    while refused.status_code == 200:
        refused = outsider.get("/records")
    assert (refused.status_code, refused.json()["error_code"]) == (403, 40301)
    alice.delete_instances()
    bob.delete_instances()


def test_clients_are_kept_for_so_many_callers(secured: str, tmp_path: Path) -> None:
    """With one only, each change of the caller replaces them, and nothing is lost."""
    values = settings(secured, tmp_path, "BASIC") | {"kaspar.identity.clients": "1"}
    with RunningRest(values) as rest:
        for name in ("alice", "bob", "alice"):
            with httpx.Client(base_url=rest.url, timeout=30, auth=(name, USERS[name])) as client:
                Api(client).write("hers" if name == "alice" else "his", name)


def test_credentials_that_the_broker_does_not_accept_are_reported(secured: str, tmp_path: Path) -> None:
    values = settings(secured, tmp_path, "BASIC")
    (tmp_path / "credentials").write_text("carol:unknown to the broker\n")
    with (
        RunningRest(values) as rest,
        httpx.Client(base_url=rest.url, timeout=30, auth=("carol", "unknown to the broker")) as client,
    ):
        for response in (client.get("/topics"), Api(client).produce("hers", {"records": [{"value": 1}]}, "json")):
            assert (response.status_code, response.json()["error_code"]) == (401, 40101), response.text
