"""Bearer tokens, delegation tokens, sessions that end and certificates that are renewed, with stock clients."""

import base64
import json
import os
import re
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Producer
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from tests.compat.security.clients import CLIENTS, PATIENT, RECORDS, REFUSALS, Clients, all_clients
from tests.compat.security.secured import OAUTHBEARER, Login, Secured, secured_broker
from tests.peers.kafka_tools import KafkaTools
from tests.peers.missing import unless_missing
from tests.peers.process import write_properties

BEARERS = "BEARERS"
HEADER = b'{"alg": "ES256", "kid": "one"}'
UNSIGNED = b'{"alg": "none"}'
KEY = ec.generate_private_key(ec.SECP256R1())
TOKENS = "org.apache.kafka.tools.DelegationTokenCommand"
TOPICS = "org.apache.kafka.tools.TopicCommand"


def text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def bearer_token(key: ec.EllipticCurvePrivateKey, **changes: object) -> str:
    now = int(time.time())
    claims = {"sub": "alice", "iat": now, "exp": now + 600, "aud": "kafka", "scope": "all", **changes}
    message = f"{text(HEADER)}.{text(json.dumps(claims).encode())}"
    r, s = decode_dss_signature(key.sign(message.encode(), ec.ECDSA(hashes.SHA256())))
    return f"{message}.{text(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


def keys_document() -> str:
    point = KEY.public_key().public_numbers()
    entry = {"kty": "EC", "crv": "P-256", "kid": "one", "use": "sig", "alg": "ES256"}
    return json.dumps(
        {"keys": [{**entry, "x": text(point.x.to_bytes(32, "big")), "y": text(point.y.to_bytes(32, "big"))}]}
    )


@pytest.fixture(scope="module")
def secured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    if request.config.getoption("--against") == "kafka":
        pytest.skip("Kafka allows a file of keys only with a property of its JVM")
    folder = tmp_path_factory.mktemp("tokens")
    keys = folder / "keys.json"
    keys.write_text(keys_document())
    more = {
        "delegation.token.secret.key": "token-secret-key",
        "listener.name.sasl_plaintext.scram-sha-256.connections.max.reauth.ms": "2000",
        f"listener.name.{BEARERS.lower()}.sasl.enabled.mechanisms": "OAUTHBEARER",
        f"listener.name.{BEARERS.lower()}.oauthbearer.sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        f"listener.name.{BEARERS.lower()}.oauthbearer.sasl.oauthbearer.expected.audience": "kafka",
    }
    with secured_broker(request, folder, more, {BEARERS: "SASL_PLAINTEXT"}) as running:
        yield running


@pytest.fixture(scope="module")
def clients(secured: Secured) -> Iterator[Clients]:
    with all_clients(secured) as running:
        yield running


# -- sessions ----------------------------------------------------------------------------------------------------------


def test_a_producer_logs_in_again_in_mid_stream(secured: Secured) -> None:
    problems: list[KafkaError | None] = []
    login = Login("SASL_PLAINTEXT", "SASL_PLAINTEXT", "SCRAM-SHA-256")
    producer = Producer({**secured.librdkafka(login), "error_cb": problems.append})
    sent = 0
    deadline = time.monotonic() + 6
    while time.monotonic() < deadline:
        producer.produce("stream", b"record", on_delivery=lambda problem, _: problems.append(problem))
        sent += 1
        producer.poll(0.05)
    assert producer.flush(30) == 0
    assert [problem for problem in problems if problem is not None] == []
    assert "its session expired" not in secured.broker.log_text()
    assert len(problems) == sent > 20


def test_certificates_are_rolled_while_clients_produce(secured: Secured) -> None:
    """The connections that there are stay, and new ones are made with the new certificate."""
    login = Login("SSL", "SSL")
    port = secured.ports[login.listener]
    before = ssl.get_server_certificate(("localhost", port))
    problems: list[KafkaError | None] = []

    def produce(producer: Producer) -> None:
        producer.produce("rolled", b"record", on_delivery=lambda problem, _: problems.append(problem))
        producer.poll(0.02)

    first = Producer({**secured.librdkafka(login), "error_cb": problems.append})
    produce(first)
    os.replace(secured.file("renewed.pem"), secured.file("broker.pem"))
    sent, deadline = 1, time.monotonic() + 30
    while ssl.get_server_certificate(("localhost", port)) == before:
        assert time.monotonic() < deadline, "the new certificate is not served"
        produce(first)
        sent += 1
    second = Producer({**secured.librdkafka(login), "error_cb": problems.append})
    for producer in (first, second):
        produce(producer)
        assert producer.flush(30) == 0
    assert problems == [None] * (sent + 2)


# -- OAUTHBEARER -------------------------------------------------------------------------------------------------------


def bearer(token: str) -> Login:
    return Login(BEARERS, "SASL_PLAINTEXT", OAUTHBEARER, password=token)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_signed_token_gets_in(secured: Secured, clients: Clients, client: str) -> None:
    topic = secured.new_topic(f"{client}-bearer")
    assert clients.round_trip(client, secured, bearer(bearer_token(KEY)), topic) == RECORDS


WRONG_TOKENS: dict[str, Callable[[], str]] = {
    "another key": lambda: bearer_token(ec.generate_private_key(ec.SECP256R1())),
    "another audience": lambda: bearer_token(KEY, aud="elsewhere"),
    "expired": lambda: bearer_token(KEY, exp=int(time.time()) - 60),
    "no signature": lambda: f"{text(UNSIGNED)}.{bearer_token(KEY).split('.')[1]}.",
}


@pytest.mark.parametrize("what", WRONG_TOKENS)
@pytest.mark.parametrize(
    "client", [pytest.param(name, marks=pytest.mark.long if name in PATIENT else ()) for name in CLIENTS]
)
def test_other_tokens_do_not(secured: Secured, clients: Clients, client: str, what: str) -> None:
    with pytest.raises(REFUSALS):
        clients.round_trip(client, secured, bearer(WRONG_TOKENS[what]()), f"{client}-refused", retries=0)


def test_java_gets_in_with_a_signed_token_and_with_no_other(secured: Secured, tmp_path: Path) -> None:
    """Its login module reads the token from a file, which has to be allowed by a property of the JVM."""
    token, config = tmp_path / "token", tmp_path / "client.properties"
    module = "org.apache.kafka.common.security.oauthbearer"
    write_properties(
        config,
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": OAUTHBEARER,
            "sasl.jaas.config": f"{module}.OAuthBearerLoginModule required;",
            "sasl.login.callback.handler.class": f"{module}.OAuthBearerLoginCallbackHandler",
            "sasl.oauthbearer.token.endpoint.url": token.as_uri(),
        },
    )
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={token.as_uri()}"
    servers = ("--bootstrap-server", f"localhost:{secured.ports[BEARERS]}", "--list", "--command-config", config)
    with unless_missing(lambda: KafkaTools(allowed)) as java:
        token.write_text(bearer_token(KEY))
        listed = java.run(TOPICS, *servers)
        assert listed.code == 0, listed
        token.write_text(WRONG_TOKENS["another key"]())
        refused = java.run(TOPICS, *servers)
        assert refused.code == 1
        assert "SaslAuthenticationException" in refused.output + refused.errors, refused


# -- delegation tokens -------------------------------------------------------------------------------------------------


@pytest.fixture
def java() -> Iterator[KafkaTools]:
    with unless_missing(KafkaTools) as tools:
        yield tools


def test_kafkas_command_creates_a_token_and_java_logs_in_with_it(
    secured: Secured, java: KafkaTools, tmp_path: Path
) -> None:
    login = Login("SASL_SSL", "SASL_SSL", "SCRAM-SHA-512")
    own, with_token = tmp_path / "own.properties", tmp_path / "token.properties"
    write_properties(own, secured.java(login))
    servers = ("--bootstrap-server", secured.bootstrap(login))
    created = java.run(
        TOKENS,
        *servers,
        "--create",
        "--max-life-time-period",
        "-1",
        "--command-config",
        own,
        "--renewer-principal",
        "User:bob",
    )
    assert created.code == 0, created
    found = re.search(r"^(\S+)\s+(\S+={0,2})\s+User:alice", created.output, re.MULTILINE)
    assert found is not None, created.output
    token_id, hmac = found.groups()
    module = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    write_properties(
        with_token,
        {
            **secured.java(login),
            "sasl.jaas.config": f'{module} username="{token_id}" password="{hmac}" tokenauth="true";',
        },
    )
    listed = java.run(TOPICS, *servers, "--list", "--command-config", with_token)
    assert listed.code == 0, listed
    described = java.run(TOKENS, *servers, "--describe", "--owner-principal", "User:alice", "--command-config", own)
    assert token_id in described.output
    expired = java.run(
        TOKENS, *servers, "--expire", "--expiry-time-period", "-1", "--hmac", hmac, "--command-config", own
    )
    assert expired.code == 0, expired
    refused = java.run(TOPICS, *servers, "--list", "--command-config", with_token)
    assert "SaslAuthenticationException" in refused.output + refused.errors
