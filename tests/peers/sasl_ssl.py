"""SASL_SSL for the brokers and clients of tests: certificates, a SCRAM user, and the settings of each client.

Brokers keep PLAINTEXT beside it, on which everybody is a super user: tests prepare and look at topics there.

    listener = SecuredListener(folder, broker, User("client", "secret"))
    broker.start()
    listener.admit([Acl(ResourceType.TOPIC, "*", AclOperation.WRITE)])
    Producer(listener.librdkafka)
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from kaspar.acls.acl import Acl as StoredAcl
from kaspar.acls.acl import AclFilter, AclOperation, AclPermissionType, PatternType, ResourceType
from kaspar.client.admin.acls import create_acls, delete_acls
from kaspar.client.admin.session import Admin
from kaspar.security.certificates import CertificateAuthority
from tests.peers.process import BrokerProcess
from tests.peers.wire import free_port

LISTENER = "OUTSIDE"
MECHANISM = "SCRAM-SHA-512"
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@dataclass(frozen=True, slots=True)
class User:
    name: str
    password: str

    @property
    def jaas(self) -> str:
        return (
            "org.apache.kafka.common.security.scram.ScramLoginModule required "
            f'username="{self.name}" password="{self.password}";'
        )


def write_certificates(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    authority = CertificateAuthority.new()
    (folder / "ca.pem").write_bytes(authority.certificate)
    (folder / "broker.pem").write_bytes(authority.issue("broker", hosts=["localhost", "127.0.0.1"]).key_and_chain)
    (folder / "client.pem").write_bytes(authority.issue("client").key_and_chain)


def broker_settings(folder: Path, *, plain_port: int, secure_port: int) -> dict[str, str]:
    listeners = f"PLAINTEXT://127.0.0.1:{plain_port},{LISTENER}://127.0.0.1:{secure_port}"
    return {
        "listeners": listeners,
        "advertised.listeners": listeners,
        "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,{LISTENER}:SASL_SSL",
        "inter.broker.listener.name": "PLAINTEXT",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "ca.pem"),
        "sasl.enabled.mechanisms": MECHANISM,
        "authorizer.class.name": AUTHORIZER,
        "super.users": "User:ANONYMOUS",
    }


def java_settings(folder: Path, user: User) -> dict[str, str]:
    return {
        "security.protocol": "SASL_SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "ca.pem"),
        "sasl.mechanism": MECHANISM,
        "sasl.jaas.config": user.jaas,
    }


def librdkafka_settings(folder: Path, user: User) -> dict[str, str]:
    return {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(folder / "ca.pem"),
        "sasl.mechanism": MECHANISM,
        "sasl.username": user.name,
        "sasl.password": user.password,
    }


def add_user(admin: AdminClient, user: User) -> None:
    credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    upsertion = UserScramCredentialUpsertion(user.name, credential, user.password.encode())
    for done in admin.alter_user_scram_credentials([upsertion]).values():
        done.result(30)


@dataclass(frozen=True, slots=True)
class Acl:
    """One that allows something. A name that ends with * is a prefix; * alone stands for all names."""

    resource: ResourceType
    name: str
    operation: AclOperation

    def of(self, user: User) -> StoredAcl:
        is_prefix = self.name != "*" and self.name.endswith("*")
        name, pattern = (self.name[:-1], PatternType.PREFIXED) if is_prefix else (self.name, PatternType.LITERAL)
        principal = f"User:{user.name}"
        return StoredAcl(self.resource, name, pattern, principal, "*", self.operation, AclPermissionType.ALLOW)


def allow(bootstrap: str, user: User, acls: Iterable[Acl]) -> None:
    with Admin(bootstrap) as admin:
        created = create_acls(admin, [acl.of(user) for acl in acls])
    assert set(created.values()) <= {None}, created


def disallow(bootstrap: str, user: User, acl: Acl) -> None:
    with Admin(bootstrap) as admin:
        assert delete_acls(admin, [AclFilter(*acl.of(user))]) == [[acl.of(user)]]


class SecuredListener:
    """A listener with SASL_SSL beside the PLAINTEXT of a broker that is not started yet, and a user who may log in
    there. They outlive restarts of the broker."""

    def __init__(self, folder: Path, broker: BrokerProcess, user: User) -> None:
        write_certificates(folder)
        port = free_port()
        broker.overrides |= broker_settings(folder, plain_port=broker.port, secure_port=port)
        self._broker = broker
        self._user = user
        address = {"bootstrap.servers": f"localhost:{port}"}
        self.librdkafka = address | librdkafka_settings(folder, user)
        self.java = address | java_settings(folder, user)

    def admit(self, acls: Iterable[Acl]) -> None:
        """Create the user, with these ACLs. The broker is running."""
        add_user(AdminClient({"bootstrap.servers": self._broker.bootstrap}), self._user)
        allow(self._broker.bootstrap, self._user, acls)

    def check_log(self, *, may_be_denied: bool = False) -> None:
        """The broker refused nothing, and has not logged the password. `may_be_denied`: clients also ask for what they
        can do without, such as the sizes of logs."""
        log = self._broker.log_text()
        assert may_be_denied or "denied principal" not in log, "its ACLs are all that a client needs"
        assert "failed to authenticate" not in log
        assert self._user.password not in log
