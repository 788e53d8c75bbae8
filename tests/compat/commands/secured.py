"""Commands as a user: the brokers of this folder also listen with SASL_SSL, where users log in by SCRAM.

    place.run(TOPICS, *credentials(place, "alice"), "--list")

A user may do what no ACL forbids: whoever is not to have a permission is denied it by an ACL.
"""

import re
from pathlib import Path

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
    address = re.search(rf"{LISTENER}://([^,]+)", place.broker.overrides["listeners"])
    assert address is not None
    folder = Path(place.broker.overrides["ssl.truststore.location"]).parent
    lines = [f"{key}={value}" for key, value in java_settings(folder, user).items()]
    return "--bootstrap-server", address[1], "--command-config", place.file("\n".join(lines), user.name)
