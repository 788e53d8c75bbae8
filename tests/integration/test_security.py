"""Log-ins at a real broker process: delegation tokens, sessions that end, certificates that are exchanged, settings."""

import asyncio
import base64
import os
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.client import Client
from kaspar.client.async_client import AsyncClient
from kaspar.client.blocking import Connection
from kaspar.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kaspar.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from kaspar.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from kaspar.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from kaspar.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)
from kaspar.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from kaspar.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kaspar.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse
from kaspar.protocol.schema import Message
from kaspar.security.certificates import CertificateAuthority
from kaspar.security.client import ClientSecurity, HandshakeFailed, client_security
from kaspar.security.scram import SCRAM_SHA_256, salted_password
from kaspar.tools import storage
from tests.peers.kaspar import KasparProcess
from tests.peers.process import write_properties
from tests.peers.wire import free_port

M = TypeVar("M", bound=Message)

SECRETS = ("alice-secret", "bob-secret", "token-secret-key", "admin-secret")
PLAIN = 'PlainLoginModule required user_alice="alice-secret" user_bob="bob-secret";'
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


class Secured(KasparProcess):
    """With a PLAINTEXT listener, one for SASL, one for TLS, and one for SASL whose sessions last two seconds."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self.authority = CertificateAuthority.new()
        (folder / "ca.pem").write_bytes(self.authority.certificate)
        self.exchange_certificate()
        self.ports = {"PLAINTEXT": self.port, **{name: free_port() for name in ("SASL", "TLS", "SHORT")}}
        listeners = ",".join(f"{name}://127.0.0.1:{port}" for name, port in self.ports.items())
        module = "org.apache.kafka.common.security.plain."
        self.overrides |= {
            "listeners": listeners,
            "advertised.listeners": listeners,
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,TLS:SSL,SHORT:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            "listener.name.sasl.plain.sasl.jaas.config": module + PLAIN,
            "listener.name.short.plain.sasl.jaas.config": module + PLAIN,
            "listener.name.short.plain.connections.max.reauth.ms": "2000",
            "listener.name.tls.ssl.keystore.type": "PEM",
            "listener.name.tls.ssl.keystore.location": str(folder / "broker.pem"),
            "delegation.token.secret.key": "token-secret-key",
        }

    def exchange_certificate(self) -> None:
        issued = self.authority.issue("broker", hosts=["localhost", "127.0.0.1"])
        new = self.folder / "broker.pem.new"
        new.write_bytes(issued.key_and_chain)
        os.replace(new, self.folder / "broker.pem")

    def client(self, listener: str, security: ClientSecurity | None = None) -> Client:
        return Client(f"localhost:{self.ports[listener]}", security=security, timeout_s=30)

    def trusting(self) -> ClientSecurity | None:
        return client_security(
            {
                "security.protocol": "SSL",
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(self.folder / "ca.pem"),
            }
        )


def log_in(mechanism: str, user: str, password: str, more: str = "") -> ClientSecurity | None:
    return client_security(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": f'{SCRAM} required username="{user}" password="{password}" {more};',
        }
    )


ALICE = log_in("PLAIN", "alice", "alice-secret")
BOB = log_in("PLAIN", "bob", "bob-secret")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with Secured(tmp_path_factory.mktemp("secured")) as running:
        yield running


def ask(client: Client, message: Message, kind: type[M]) -> M:
    return client.request(message, kind)


def can_log_in(broker: Secured, security: ClientSecurity | None) -> bool:
    try:
        with broker.client("SASL", security) as client:
            ask(client, MetadataRequest(topics=()), MetadataResponse)
    except Refused as refused:
        if refused.code is not ErrorCode.SASL_AUTHENTICATION_FAILED:
            raise
        return False
    return True


# -- SCRAM users -------------------------------------------------------------------------------------------------------


def upsertion(user: str, password: str, iterations: int = 4096, mechanism: int = 1) -> ScramCredentialUpsertion:
    salted = salted_password(SCRAM_SHA_256, password, b"salt", iterations)
    return ScramCredentialUpsertion(
        name=user, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=salted
    )


def test_scram_users_come_and_go_while_the_broker_runs(broker: Secured) -> None:
    with broker.client("PLAINTEXT") as client:

        def alter(*changes: ScramCredentialUpsertion | ScramCredentialDeletion) -> dict[str, int]:
            request = AlterUserScramCredentialsRequest(
                deletions=tuple(each for each in changes if isinstance(each, ScramCredentialDeletion)),
                upsertions=tuple(each for each in changes if isinstance(each, ScramCredentialUpsertion)),
            )
            response = ask(client, request, AlterUserScramCredentialsResponse)
            return {result.user: result.error_code for result in response.results}

        carol = log_in("SCRAM-SHA-256", "carol", "first")
        assert not can_log_in(broker, carol)
        assert alter(upsertion("carol", "first")) == {"carol": 0}
        assert can_log_in(broker, carol)
        assert alter(upsertion("carol", "second", 8192)) == {"carol": 0}
        assert not can_log_in(broker, carol)
        assert can_log_in(broker, log_in("SCRAM-SHA-256", "carol", "second"))
        described = ask(
            client,
            DescribeUserScramCredentialsRequest(users=(UserName(name="carol"), UserName(name="nobody"))),
            DescribeUserScramCredentialsResponse,
        )
        found = {each.user: each for each in described.results}
        assert [(info.mechanism, info.iterations) for info in found["carol"].credential_infos] == [(1, 8192)]
        assert found["nobody"].error_code == ErrorCode.RESOURCE_NOT_FOUND
        assert alter(
            ScramCredentialDeletion(name="carol", mechanism=1),
            ScramCredentialDeletion(name="nobody", mechanism=1),
            upsertion("weak", "x", 4095),
            upsertion("odd", "x", mechanism=9),
            upsertion("twice", "x"),
            upsertion("twice", "y"),
        ) == {
            "carol": ErrorCode.NONE,
            "nobody": ErrorCode.RESOURCE_NOT_FOUND,
            "weak": ErrorCode.UNACCEPTABLE_CREDENTIAL,
            "odd": ErrorCode.UNSUPPORTED_SASL_MECHANISM,
            "twice": ErrorCode.DUPLICATE_RESOURCE,
        }
        assert not can_log_in(broker, log_in("SCRAM-SHA-256", "carol", "second"))


def test_a_formatted_cluster_has_its_first_user(tmp_path: Path) -> None:
    broker = Secured(tmp_path / "broker")
    broker.prepare()
    file = tmp_path / "server.properties"
    write_properties(file, {"node.id": "1", "log.dirs": str(broker.data_dir)})
    assert (
        storage.main(["format", "-c", str(file), "--add-scram", "SCRAM-SHA-256=[name=admin,password=admin-secret]"])
        == 0
    )
    with broker:
        assert can_log_in(broker, log_in("SCRAM-SHA-256", "admin", "admin-secret"))
        assert not can_log_in(broker, log_in("SCRAM-SHA-256", "admin", "wrong"))


# -- delegation tokens -------------------------------------------------------------------------------------------------


def test_a_delegation_token_logs_in_until_it_is_expired(broker: Secured) -> None:
    with broker.client("SASL", ALICE) as alice, broker.client("SASL", BOB) as bob:
        renewers = (CreatableRenewers(principal_type="User", principal_name="bob"),)
        created = ask(
            alice, CreateDelegationTokenRequest(renewers=renewers, max_lifetime_ms=-1), CreateDelegationTokenResponse
        )
        assert (created.error_code, created.principal_name) == (ErrorCode.NONE, "alice")
        password = base64.b64encode(created.hmac).decode()
        with_token = log_in("SCRAM-SHA-256", created.token_id, password, "tokenauth=true")
        assert can_log_in(broker, with_token)
        assert not can_log_in(broker, log_in("SCRAM-SHA-256", created.token_id, password))
        described = ask(bob, DescribeDelegationTokenRequest(owners=None), DescribeDelegationTokenResponse)
        assert [(token.token_id, token.hmac) for token in described.tokens] == [(created.token_id, created.hmac)]
        renewed = ask(
            bob, RenewDelegationTokenRequest(hmac=created.hmac, renew_period_ms=60_000), RenewDelegationTokenResponse
        )
        assert renewed.error_code == ErrorCode.NONE
        assert renewed.expiry_timestamp_ms < created.expiry_timestamp_ms
        with broker.client("SASL", with_token) as client:
            refused = ask(
                client, CreateDelegationTokenRequest(renewers=(), max_lifetime_ms=-1), CreateDelegationTokenResponse
            )
            assert refused.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        expired = ask(
            alice,
            ExpireDelegationTokenRequest(hmac=created.hmac, expiry_time_period_ms=-1),
            ExpireDelegationTokenResponse,
        )
        assert expired.error_code == ErrorCode.NONE
        assert not can_log_in(broker, with_token)
        unknown = ask(
            alice, RenewDelegationTokenRequest(hmac=b"x" * 64, renew_period_ms=1), RenewDelegationTokenResponse
        )
        assert unknown.error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    with broker.client("PLAINTEXT") as stranger:
        refused = ask(
            stranger, CreateDelegationTokenRequest(renewers=(), max_lifetime_ms=-1), CreateDelegationTokenResponse
        )
        assert refused.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


# -- sessions ----------------------------------------------------------------------------------------------------------


def test_clients_log_in_again_before_their_session_ends(broker: Secured) -> None:
    with Connection("localhost", broker.ports["SHORT"], security=ALICE) as connection:
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            assert isinstance(connection.request(MetadataRequest(topics=())), MetadataResponse)
            time.sleep(0.05)


def test_the_asynchronous_client_does_too(broker: Secured) -> None:
    async def scenario() -> None:
        async with AsyncClient(f"localhost:{broker.ports['SHORT']}", security=BOB) as client:
            await client.request(MetadataRequest(topics=()), MetadataResponse)
            (connection,) = client._connections.values()
            deadline = time.monotonic() + 5
            while time.monotonic() < deadline:
                await asyncio.gather(*(client.request(MetadataRequest(topics=()), MetadataResponse) for _ in range(5)))
                await asyncio.sleep(0.05)
            assert not connection.is_closed, "it is still the first connection"

    asyncio.run(scenario())


def test_a_client_that_does_not_is_closed_with_its_next_request(broker: Secured) -> None:
    with Connection("localhost", broker.ports["SHORT"], security=ALICE) as connection:
        connection._log_in_again_at = None
        time.sleep(2.2)
        with pytest.raises(ConnectionError):
            connection.request(MetadataRequest(topics=()))


# -- certificates ------------------------------------------------------------------------------------------------------


def serial_number(broker: Secured) -> int:
    context = ssl.create_default_context(cafile=str(broker.folder / "ca.pem"))
    with (
        socket.create_connection(("localhost", broker.ports["TLS"]), 30) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as encrypted,
    ):
        certificate = encrypted.getpeercert()
    assert certificate is not None
    return int(str(certificate["serialNumber"]), 16)


def test_new_connections_get_the_new_certificate_and_old_ones_stay(broker: Secured) -> None:
    with broker.client("TLS", broker.trusting()) as client:
        ask(client, MetadataRequest(topics=()), MetadataResponse)
        before = serial_number(broker)
        broker.exchange_certificate()
        deadline = time.monotonic() + 30
        while serial_number(broker) == before:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        (broker.folder / "broker.pem").write_text("not a certificate")
        time.sleep(1.1)
        after = serial_number(broker)
        assert after != before, "what cannot be used changes nothing"
        broker.exchange_certificate()
        ask(client, MetadataRequest(topics=()), MetadataResponse)


def test_a_client_that_does_not_trust_the_certificate_says_so(broker: Secured, tmp_path: Path) -> None:
    other = tmp_path / "other.pem"
    other.write_bytes(CertificateAuthority.new().certificate)
    distrusting = client_security(
        {"security.protocol": "SSL", "ssl.truststore.type": "PEM", "ssl.truststore.location": str(other)}
    )
    with pytest.raises(HandshakeFailed), broker.client("TLS", distrusting) as client:
        ask(client, MetadataRequest(topics=()), MetadataResponse)
    deadline = time.monotonic() + 30
    while "a TLS handshake failed" not in broker.log_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert "Traceback" not in broker.log_text()


# -- what others see ---------------------------------------------------------------------------------------------------


def test_secrets_are_shown_nowhere(broker: Secured) -> None:
    with broker.client("PLAINTEXT") as client:
        resource = DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=None)
        response = ask(
            client,
            DescribeConfigsRequest(resources=(resource,), include_synonyms=True, include_documentation=False),
            DescribeConfigsResponse,
        )
    shown = {config.name: config for config in response.results[0].configs}
    assert shown["delegation.token.secret.key"].value is None
    assert shown["listener.name.sasl.plain.sasl.jaas.config"].is_sensitive
    assert shown["listener.name.tls.ssl.keystore.type"].value == "PEM"
    seen = repr(response) + broker.log_text()
    assert not [secret for secret in SECRETS if secret in seen]
