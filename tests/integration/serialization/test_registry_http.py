"""The registry's client over HTTP: registries that are away or refuse, credentials, and responses that are none."""

import base64
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from kaspar.schemas.schema import SchemaType
from kaspar.security.tls import server_context
from kaspar.serialization.errors import RegistryError, RegistryUnavailable
from kaspar.serialization.registry_client import RegistryClient, SchemaText
from kaspar.serialization.registry_config import registry_config
from kaspar.serialization.registry_http import HttpRequests
from tests.peers.sasl_ssl import write_certificates
from tests.peers.small_registry import Scripted, SmallRegistry

INT = SchemaText(SchemaType.AVRO, '"int"')
PROTOBUF = SchemaText(SchemaType.PROTOBUF, 'syntax = "proto3"; message A {}')
AWAY = Scripted(503, b'{"error_code": 50301, "message": "no leader"}')


@pytest.fixture
def registry() -> Iterator[SmallRegistry]:
    with SmallRegistry() as running:
        yield running


class Client(RegistryClient):
    """Which notes how long it would have waited."""

    def __init__(self, *urls: str, **properties: str) -> None:
        """`_` in a name stands for a dot."""
        self.waited: list[float] = []
        given = {name.replace("_", "."): value for name, value in properties.items()}
        config = registry_config({"schema.registry.url": ",".join(urls), **given})
        super().__init__(config, requests=HttpRequests(config, sleep=self.waited.append))


def free_url() -> str:
    """Where nobody listens."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{reserved.getsockname()[1]}"


def test_type_is_sent_unless_it_is_avro(registry: SmallRegistry) -> None:
    client = Client(registry.url)
    assert client.register("a", INT).id == 1
    assert client.register("p", PROTOBUF).id == 2
    bodies = [json.loads(received.body) for received in registry.requests]
    assert bodies[0] == {"schema": '"int"'}
    assert bodies[1]["schemaType"] == "PROTOBUF"
    assert registry.requests[0].headers["content-type"] == "application/vnd.schemaregistry.v1+json"
    client.close()


def test_refusal_has_confluents_code_and_is_not_retried(registry: SmallRegistry) -> None:
    client = Client(registry.url)
    with pytest.raises(RegistryError, match=r"Subject 'nope' not found\.") as caught:
        client.latest("nope")
    assert (caught.value.status, caught.value.error_code) == (404, 40401)
    assert (len(registry.requests), client.waited) == (1, [])
    client.close()


def test_registry_without_a_leader_is_asked_again(registry: SmallRegistry) -> None:
    registry.scripted.extend((AWAY, AWAY))
    client = Client(registry.url, retries_wait_ms="100")
    assert client.register("a", INT).id == 1
    assert len(client.waited) == 2
    assert client.waited[0] <= 0.1
    assert client.waited[1] <= 0.2
    client.close()


def test_retries_end(registry: SmallRegistry) -> None:
    registry.scripted.extend([AWAY] * 10)
    client = Client(registry.url, max_retries="2")
    with pytest.raises(RegistryError, match="no leader") as caught:
        client.register("a", INT)
    assert caught.value.error_code == 50301
    assert len(registry.requests) == 3
    client.close()


def test_another_registry_is_asked_when_one_is_away(registry: SmallRegistry) -> None:
    client = Client(free_url(), registry.url)
    assert client.register("a", INT).id == 1
    assert client.schema_by_id(1).schema == INT
    assert client.waited == []
    client.close()


def test_no_registry_at_all() -> None:
    url = free_url()
    client = Client(url, max_retries="1")
    with pytest.raises(RegistryUnavailable, match=f"The schema registry at {url} .*cannot be reached"):
        client.latest("a")
    assert len(client.waited) == 1
    client.close()


def test_registry_that_does_not_respond() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        client = Client(url, max_retries="0", http_read_timeout_ms="50")
        with pytest.raises(RegistryUnavailable, match="did not respond in time"):
            client.latest("a")
        client.close()


@pytest.mark.parametrize(
    ("response", "sentence", "status"),
    [
        (Scripted(200, b"<html>"), "sent no JSON: it is no schema registry", 502),
        (Scripted(404, b"<html>"), "HTTP status 404", 404),
        (
            Scripted(401, b'{"error_code": 401, "message": "Unauthorized"}'),
            "did not accept the credentials .*: Unauthorized",
            401,
        ),
        (Scripted(200, b'{"nothing": 1}'), "The registry sent no schema", 502),
    ],
)
def test_response_of_something_else(registry: SmallRegistry, response: Scripted, sentence: str, status: int) -> None:
    registry.scripted.append(response)
    client = Client(registry.url, max_retries="0")
    with pytest.raises(RegistryError, match=sentence) as caught:
        client.latest("a")
    assert caught.value.status == status
    client.close()


def test_credentials_of_the_url(registry: SmallRegistry) -> None:
    client = Client(registry.url.replace("//", "//ada:s%40cret@"))
    client.subjects()
    assert registry.requests[0].headers["authorization"] == "Basic " + base64.b64encode(b"ada:s@cret").decode()
    client.close()


def test_static_token(registry: SmallRegistry) -> None:
    client = Client(registry.url, bearer_auth_credentials_source="STATIC_TOKEN", bearer_auth_token="abc")
    client.subjects()
    assert registry.requests[0].headers["authorization"] == "Bearer abc"
    client.close()


def test_token_of_an_issuer_is_kept(registry: SmallRegistry) -> None:
    with SmallRegistry() as issuer:
        issuer.scripted.append(Scripted(200, b'{"access_token": "t1", "expires_in": 3600}'))
        client = Client(
            registry.url,
            bearer_auth_credentials_source="OAUTHBEARER",
            bearer_auth_issuer_endpoint_url=f"{issuer.url}/token",
            bearer_auth_client_id="me",
            bearer_auth_client_secret="secret",
            bearer_auth_scope="all",
        )
        client.subjects()
        client.subjects()
        client.close()
        assert [received.headers["authorization"] for received in registry.requests] == ["Bearer t1"] * 2
        (asked,) = issuer.requests
        assert asked.body == b"grant_type=client_credentials&scope=all"
        assert asked.headers["authorization"] == "Basic " + base64.b64encode(b"me:secret").decode()


def test_issuer_that_refuses(registry: SmallRegistry) -> None:
    with SmallRegistry() as issuer:
        issuer.scripted.append(Scripted(400, b"{}"))
        client = Client(
            registry.url,
            bearer_auth_credentials_source="OAUTHBEARER",
            bearer_auth_issuer_endpoint_url=issuer.url,
            bearer_auth_client_id="me",
            bearer_auth_client_secret="secret",
        )
        with pytest.raises(RegistryError, match="No token came from") as caught:
            client.subjects()
        assert caught.value.status == 401
        assert registry.requests == []
        client.close()


@pytest.fixture
def certificates(tmp_path: Path) -> Path:
    write_certificates(tmp_path)
    return tmp_path


@pytest.fixture
def secured(certificates: Path) -> Iterator[SmallRegistry]:
    """Which demands certificates of its clients."""
    settings = {"ssl.keystore.location": str(certificates / "broker.pem"), "ssl.keystore.type": "PEM"}
    settings |= {"ssl.truststore.location": str(certificates / "ca.pem"), "ssl.truststore.type": "PEM"}
    with SmallRegistry(server_context(settings, "required")) as running:
        yield running


def test_both_sides_have_certificates(secured: SmallRegistry, certificates: Path) -> None:
    client = Client(
        secured.url,
        schema_registry_ssl_truststore_location=str(certificates / "ca.pem"),
        schema_registry_ssl_truststore_type="PEM",
        schema_registry_ssl_keystore_location=str(certificates / "client.pem"),
        schema_registry_ssl_keystore_type="PEM",
    )
    assert client.register("a", INT).id == 1
    client.close()


def test_registry_that_is_not_trusted(secured: SmallRegistry) -> None:
    client = Client(secured.url, max_retries="0")
    with pytest.raises(RegistryUnavailable, match="certificate verify failed"):
        client.register("a", INT)
    assert secured.requests == []
    client.close()
