"""Commands as a user: the brokers of this folder also listen with SASL_SSL, where users log in by SCRAM.

    alice = credentials(place, "alice")
    with denied(place, "alice", ResourceType.TOPIC, topic):
        place.run(TOPICS, *alice, "--describe", "--topic", topic)

A user may do everything with a resource that has no ACL.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kaspar.acls.acl import WILDCARD, Acl, AclFilter, AclOperation, AclPermissionType, PatternType, ResourceType
from kaspar.client.admin.acls import create_acls, delete_acls
from kaspar.client.admin.scram import NewScramCredential, ScramCredentialInfo, alter_scram_credentials
from kaspar.client.admin.session import Admin
from tests.compat.commands.places import Place
from tests.compat.commands.settling import settle
from tests.peers.kafka import ApacheKafka
from tests.peers.process import BrokerProcess
from tests.peers.sasl_ssl import LISTENER, MECHANISM, User, broker_settings, java_settings, write_certificates
from tests.peers.wire import free_port


def add_secured_listener(broker: BrokerProcess) -> None:
    """Before the broker starts."""
    folder = broker.folder / "certificates"
    write_certificates(folder)
    settings = broker_settings(folder, plain_port=broker.port, secure_port=free_port())
    if isinstance(broker, ApacheKafka):
        settings["listeners"] += f",CONTROLLER://{broker.host}:{broker.controller_port}"
        settings["listener.security.protocol.map"] += ",CONTROLLER:PLAINTEXT"
        login = f"listener.name.{LISTENER.lower()}.{MECHANISM.lower()}.sasl.jaas.config"
        settings[login] = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    broker.overrides |= settings


def credentials(place: Place, name: str, *, password: str = "secret") -> tuple[str | Path, ...]:
    """The options with which this place's user of that name connects. The user is created."""
    user = User(place.name_of(name), password)
    with Admin(place.broker.bootstrap) as admin:
        new = NewScramCredential(user.name, "secret", ScramCredentialInfo(MECHANISM))
        assert alter_scram_credentials(admin, [new]) == {user.name: None}
    settle(place)
    return _options(place, user)


@contextmanager
def denied(place: Place, user: str, resource_type: ResourceType, name: str) -> Iterator[None]:
    """Meanwhile this place's user of that name may do nothing with the resource."""
    principal = f"User:{place.name_of(user)}"
    everything = AclOperation.ALL, AclPermissionType.DENY
    acl = Acl(resource_type, name, PatternType.LITERAL, principal, WILDCARD, *everything)
    with Admin(place.broker.bootstrap) as admin:
        assert create_acls(admin, [acl]) == {acl: None}
        settle(place)
        yield
        assert delete_acls(admin, [AclFilter(*acl)]) == [[acl]]


def token_credentials(place: Place, token_id: str, hmac: str) -> tuple[str | Path, ...]:
    """The options with which a client connects with a delegation token."""
    return _options(place, User(token_id, hmac), tokenauth=True)


def _options(place: Place, user: User, *, tokenauth: bool = False) -> tuple[str | Path, ...]:
    address = re.search(rf"{LISTENER}://([^,]+)", place.broker.overrides["listeners"])
    assert address is not None
    settings = java_settings(Path(place.broker.overrides["ssl.truststore.location"]).parent, user)
    if tokenauth:
        settings["sasl.jaas.config"] = settings["sasl.jaas.config"].replace(";", ' tokenauth="true";')
    text = "".join(f"{key}={value}\n" for key, value in settings.items())
    return "--bootstrap-server", address[1], "--command-config", place.file(text, user.name)
