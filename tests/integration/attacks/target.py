"""The broker that is attacked, and the clients that attack it."""

import base64
import json
import ssl
import time
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from kaspar.base.errors import ErrorCode
from kaspar.config.broker.authorization import STANDARD_AUTHORIZER
from kaspar.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialUpsertion,
)
from kaspar.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from kaspar.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from kaspar.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kaspar.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kaspar.security.certificates import CertificateAuthority
from kaspar.security.scram import MECHANISM_TYPES, SCRAM_SHA_256, ScramClient, salted_password
from tests.peers.observed import MIB, ObservedBroker
from tests.peers.raw_client import RawClient
from tests.peers.wire import free_port

LISTENERS: Final = {
    "PLAINTEXT": "PLAINTEXT",
    "TLS": "SSL",
    "MUTUAL": "SSL",
    "SASL": "SASL_PLAINTEXT",
    "SASL_TLS": "SASL_SSL",
    "STRICT": "SASL_PLAINTEXT",  # SCRAM-SHA-512 alone
    "SHORT": "SASL_PLAINTEXT",  # sessions end
}
PASSWORDS: Final = {"admin": "admin-secret", "alice": "alice-secret", "bob": "bob-secret"}
PLAIN_USERS: Final = {**PASSWORDS, "\u0430lice": "cyrillic-secret", "\uff41lice": "wide-secret"}
TOPIC: Final = "orders"
MAX_STRANGERS: Final = 500
MAX_SASL_BYTES: Final = 100_000
ISSUER, AUDIENCE = "https://issuer.example", "kafka"
READ, WRITE, DESCRIBE, CLUSTER_ACTION = 3, 4, 8, 9
_TOPIC_RESOURCE, _LITERAL, _ALLOW = 2, 3, 3
_ANY = 1

SIGNING_KEY: Final = rsa.generate_private_key(65537, 2048)


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def keys_document() -> bytes:
    numbers = SIGNING_KEY.public_key().public_numbers()
    key = {"kty": "RSA", "kid": "one", "use": "sig", "n": base64url(numbers.n.to_bytes(256, "big")), "e": "AQAB"}
    return json.dumps({"keys": [key]}).encode()


def signed(header: bytes, claims: bytes, key: rsa.RSAPrivateKey = SIGNING_KEY) -> str:
    message = f"{base64url(header)}.{base64url(claims)}"
    return f"{message}.{base64url(key.sign(message.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


class Target(ObservedBroker):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self.authority = CertificateAuthority.new()
        self.audit_file = folder / "audit.json"
        self.ports = {name: self.port if name == "PLAINTEXT" else free_port() for name in LISTENERS}
        (folder / "ca.pem").write_bytes(self.authority.certificate)
        (folder / "broker.pem").write_bytes(self.authority.issue("broker", hosts=["localhost"]).key_and_chain)
        (folder / "keys.json").write_bytes(keys_document())
        listeners = ",".join(f"{name}://127.0.0.1:{port}" for name, port in self.ports.items())
        users = " ".join(f'user_{name}="{password}"' for name, password in PLAIN_USERS.items())
        module = f"org.apache.kafka.common.security.plain.PlainLoginModule required {users};"
        bearers = "listener.name.sasl.oauthbearer.sasl.oauthbearer."
        self.overrides |= {
            "listeners": listeners,
            "advertised.listeners": listeners,
            "listener.security.protocol.map": ",".join(f"{name}:{kind}" for name, kind in LISTENERS.items()),
            "inter.broker.listener.name": "PLAINTEXT",
            "authorizer.class.name": STANDARD_AUTHORIZER,
            "super.users": "User:admin",
            "kaspar.authorizer.log.file": str(self.audit_file),
            "kaspar.unauthenticated.max.connections": str(MAX_STRANGERS),
            "socket.listen.backlog.size": "2000",
            "connections.max.idle.ms": "7200000",  # longer than the longest flood
            "connection.failed.authentication.delay.ms": "50",
            "sasl.server.max.receive.size": str(MAX_SASL_BYTES),
            "delegation.token.secret.key": "token-secret-key",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(folder / "broker.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(folder / "ca.pem"),
            "listener.name.mutual.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            "listener.name.sasl.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            "listener.name.strict.sasl.enabled.mechanisms": "SCRAM-SHA-512",
            **{
                f"listener.name.{name}.plain.sasl.jaas.config": module
                for name in ("sasl", "sasl_tls", "short", "strict")
            },
            "listener.name.short.connections.max.reauth.ms": "60000",
            f"{bearers}jwks.endpoint.url": (folder / "keys.json").as_uri(),
            f"{bearers}expected.audience": AUDIENCE,
            f"{bearers}expected.issuer": ISSUER,
            "offsets.topic.num.partitions": "1",
        }

    def client(self, *, timeout: float = 30.0) -> "Guest":
        """As the super user."""
        client = Guest(self.ports["SASL"], timeout=timeout)
        client.log_in("admin")
        return client

    def guest(self, listener: str, *, timeout: float = 30.0) -> "Guest":
        return Guest(self.ports[listener], timeout=timeout)

    def user(self, name: str, listener: str = "SASL") -> "Guest":
        client = self.guest(listener)
        client.log_in(name)
        return client

    def still_serves(self) -> None:
        """An honest client of SASL and one of TLS write and are answered."""
        with self.client() as client:
            assert client.produce(TOPIC, [b"still here"]).error_code == ErrorCode.NONE
        with self.guest("TLS") as client:
            client.encrypt(trusting(self.authority))
            client.metadata()

    def audit_lines(self) -> list[dict[str, str]]:
        """As many as are written whole. A line that is no JSON raises."""
        whole, _, _ = self.audit_file.read_text().rpartition("\n")
        return [json.loads(line) for line in whole.split("\n") if line]


class Guest(RawClient):
    """A client that does no more than it is told to, and forgets who it is."""

    def encrypt(self, context: ssl.SSLContext) -> None:
        self.socket = context.wrap_socket(self.socket, server_hostname="localhost")

    def handshake(self, mechanism: str, version: int = 1) -> SaslHandshakeResponse:
        return self.call(SaslHandshakeRequest(mechanism=mechanism), SaslHandshakeResponse, version)

    def authenticate(self, token: bytes) -> SaslAuthenticateResponse:
        return self.call(SaslAuthenticateRequest(auth_bytes=token), SaslAuthenticateResponse, 2)

    def challenge(self, token: bytes) -> bytes:
        response = self.authenticate(token)
        assert response.error_code == ErrorCode.NONE, response
        return response.auth_bytes

    def is_refused(self, token: bytes) -> str:
        """The exchange ends with this token, in the way in which all failures end; what the client is told."""
        response = self.authenticate(token)
        assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED, response
        assert response.auth_bytes == b""
        assert self.is_closed_by_broker()
        return response.error_message or ""

    def log_in(self, user: str, password: str | None = None) -> SaslAuthenticateResponse:
        self.handshake("PLAIN")
        response = self.authenticate(f"\0{user}\0{password or PLAIN_USERS[user]}".encode())
        assert response.error_code == ErrorCode.NONE, response
        return response

    def scram(self, client: ScramClient) -> SaslAuthenticateResponse:
        """To the end of the exchange, if it gets there."""
        self.handshake(client.mechanism)
        token: bytes | None = client.first()
        while token is not None:
            response = self.authenticate(token)
            if response.error_code != ErrorCode.NONE:
                break
            token = client.evaluate(response.auth_bytes)
        return response


def trusting(authority: CertificateAuthority) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=authority.certificate.decode())


def add_scram_users(client: RawClient, passwords: dict[str, str], iterations: int = 4096) -> list[int]:
    """With both mechanisms; the error codes."""
    codes = []
    for code, mechanism in MECHANISM_TYPES.items():
        upsertions = tuple(
            ScramCredentialUpsertion(
                name=name,
                mechanism=code,
                iterations=iterations,
                salt=b"salt",
                salted_password=salted_password(mechanism, password, b"salt", 4096),
            )
            for name, password in passwords.items()
        )
        request = AlterUserScramCredentialsRequest(deletions=(), upsertions=upsertions)
        codes += [each.error_code for each in client.call(request, AlterUserScramCredentialsResponse).results]
    return codes


def allow(client: RawClient, principal: str, operation: int, topic: str = TOPIC) -> int:
    """The error code."""
    acl = AclCreation(
        resource_type=_TOPIC_RESOURCE,
        resource_name=topic,
        resource_pattern_type=_LITERAL,
        principal=principal,
        host="*",
        operation=operation,
        permission_type=_ALLOW,
    )
    (result,) = client.call(CreateAclsRequest(creations=(acl,)), CreateAclsResponse).results
    return result.error_code


def revoke_all(client: RawClient) -> None:
    everything = DeleteAclsFilter(
        resource_type_filter=_ANY,
        resource_name_filter=None,
        pattern_type_filter=_ANY,
        principal_filter=None,
        host_filter=None,
        operation=_ANY,
        permission_type=_ANY,
    )
    (result,) = client.call(DeleteAclsRequest(filters=(everything,)), DeleteAclsResponse).filter_results
    assert result.error_code == ErrorCode.NONE


def scram_client(user: str = "alice", password: str | None = None, mechanism: str = SCRAM_SHA_256) -> ScramClient:
    return ScramClient(mechanism, user, password or PASSWORDS[user])


class Memory:
    """How much memory the broker took since now."""

    def __init__(self, target: Target) -> None:
        self._target = target
        target.forget_peak_memory()
        self._before = target.memory_bytes()

    def check(self, bound: int = 60 * MIB) -> None:
        grown = self._target.peak_memory_bytes() - self._before
        assert grown < bound, f"memory grew by {grown / MIB:.1f} MiB"


def now_s() -> int:
    return int(time.time())
