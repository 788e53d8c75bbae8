"""The certificates, keys and passwords of a secured cluster of `kaspar up`, and the settings that use them.

Clients log in by SCRAM over TLS, and ACLs decide what they may do. Brokers and the supervisor authenticate each other
by certificates, on a listener of their own, so a cluster needs no password to start, and the supervisor can create the
first users (users.py). Everything is created at the first start, and kept.
"""

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from kaspar.base.errors import InvalidSetting, KasparError
from kaspar.supervisor.client_settings import Access
from kaspar.supervisor.folder import Folder
from kaspar.supervisor.plan import HOST, BrokerPlan, ClusterPlan
from kaspar.supervisor.readiness import Contact

ADMIN: Final = "admin"
CLIENT: Final = "client"
USERS: Final = (ADMIN, CLIENT)
MECHANISM: Final = "SCRAM-SHA-512"

_CLIENTS: Final = "CLIENTS"
_BROKERS: Final = "BROKERS"
_BROKER: Final = "broker"
_SUPERVISOR: Final = "supervisor"
_SERVICES: Final = "services"
_HOSTS: Final = ("localhost", HOST)
_VALID_DAYS: Final = 90
"""A certificate that is valid for less than this at a start is renewed, because brokers may run for a long time."""
_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def trusted_certificate(folder: Folder) -> Path:
    return folder.security / "ca.pem"


def security_settings(folder: Folder, broker: BrokerPlan) -> dict[str, str]:
    """The security settings of one broker; empty if the cluster is not secured. They contain no secrets, only file
    names.
    """
    if broker.inside_port is None:
        return {}
    return {
        "listeners": f"{_CLIENTS}://{HOST}:{broker.port},{_BROKERS}://{HOST}:{broker.inside_port}",
        "listener.security.protocol.map": f"{_CLIENTS}:SASL_SSL,{_BROKERS}:SSL",
        "inter.broker.listener.name": _BROKERS,
        f"listener.name.{_BROKERS.lower()}.ssl.client.auth": "required",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(_broker_file(folder, broker)),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(trusted_certificate(folder)),
        "sasl.enabled.mechanisms": MECHANISM,
        "authorizer.class.name": _AUTHORIZER,
        "super.users": f"User:CN={_BROKER};User:CN={_SUPERVISOR};User:{ADMIN}",
    }


def write_security(folder: Folder, plan: ClusterPlan) -> None:
    """Create the files that are missing. Raises KasparError."""
    from kaspar.security.certificate_files import load_or_make_authority, renew_if_due, replace

    try:
        if not folder.security.exists():
            folder.path.chmod(0o700)  # it also contains records and metadata
            folder.security.mkdir(mode=0o700)
        authority = load_or_make_authority(folder.security)
        for broker in plan.brokers:
            renew_if_due(_broker_file(folder, broker), authority, _BROKER, hosts=_HOSTS, days=_VALID_DAYS)
        renew_if_due(_supervisor_file(folder), authority, _SUPERVISOR, days=_VALID_DAYS)
        renew_if_due(services_certificate(folder), authority, _SERVICES, hosts=_HOSTS, days=_VALID_DAYS)
        if not _passwords_file(folder).exists():
            made = {name: secrets.token_urlsafe(24) for name in USERS}
            replace(_passwords_file(folder), msgspec.json.encode(made))
        lines = [f"{name}:{password}\n" for name, password in passwords(folder).items()]
        replace(http_users_file(folder), "".join(lines).encode())
    except OSError as problem:
        raise KasparError(f"{problem.filename} cannot be written: {problem.strerror}") from None
    _write_client_settings(folder, plan)


def passwords(folder: Folder) -> Mapping[str, str]:
    """The first users' passwords as they were created. They may have been changed in the cluster since."""
    file = _passwords_file(folder)
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, str])
    except OSError as problem:
        raise KasparError(f"{file} cannot be read: {problem.strerror}") from None
    except msgspec.DecodeError:
        raise KasparError(f"{file} was not written by 'kaspar up'") from None


def client_access(folder: Folder, plan: ClusterPlan) -> list[Access]:
    """How each of the first users connects."""
    return [
        Access(plan.bootstrap_servers, trusted_certificate(folder), MECHANISM, user, password)
        for user, password in passwords(folder).items()
    ]


def _write_client_settings(folder: Folder, plan: ClusterPlan) -> None:
    """Called at every start, because addresses may have changed. Raises KasparError."""
    from kaspar.security.certificate_files import replace

    try:
        folder.clients.mkdir(mode=0o700, exist_ok=True)
        for access in client_access(folder, plan):
            for name, text in access.files().items():
                replace(folder.clients / name, text.encode())
    except OSError as problem:
        raise KasparError(f"{problem.filename} cannot be written: {problem.strerror}") from None


def contacts_of(folder: Folder, plan: ClusterPlan) -> dict[int, Contact]:
    """How the supervisor and `kaspar status` reach the brokers. Raises KasparError if they cannot."""
    if not plan.is_secured:
        return {broker.id: Contact(broker.address) for broker in plan.brokers}
    from kaspar.security.client import client_security

    properties = {
        "security.protocol": "SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(_supervisor_file(folder)),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(trusted_certificate(folder)),
    }
    try:
        security = client_security(properties)
    except InvalidSetting as problem:
        raise KasparError(f"the brokers of {folder.path} cannot be reached: {problem}") from None
    return {broker.id: Contact(f"{HOST}:{broker.inside_port}", security) for broker in plan.brokers}


def _broker_file(folder: Folder, broker: BrokerPlan) -> Path:
    return folder.security / f"broker-{broker.id}.pem"


def _supervisor_file(folder: Folder) -> Path:
    return folder.security / "supervisor.pem"


def services_certificate(folder: Folder) -> Path:
    return folder.security / "services.pem"


def http_users_file(folder: Folder) -> Path:
    """The users that may log in to the services: the first users, with their initial passwords."""
    return folder.security / "http-users"


def created_file(folder: Folder) -> Path:
    return folder.security / "users.created"


def _passwords_file(folder: Folder) -> Path:
    return folder.security / "passwords.json"


def create_users(folder: Folder, contacts: Mapping[int, Contact]) -> None:
    """Create those of the first users that the cluster does not have. Raises KasparError or OSError."""
    from kaspar.supervisor.users import create_missing_users

    addresses = ",".join(contact.address for contact in contacts.values())
    security = next(iter(contacts.values())).security
    create_missing_users(Contact(addresses, security), MECHANISM, passwords(folder), client=CLIENT)
    created_file(folder).touch(mode=0o600)


def clients_can_log_in(folder: Folder, plan: ClusterPlan) -> bool:
    """Whether the first users have been created. Until then a secured cluster is not ready."""
    return not plan.is_secured or created_file(folder).exists()


def client_lines(folder: Folder, plan: ClusterPlan, *, with_passwords: bool) -> list[str]:
    """The lines about clients that are printed when the cluster is ready."""
    clients = folder.clients
    lines = [
        "",
        f"Clients log in over TLS. Ready settings, which only you can read, are in {clients}:",
        f"  Java, --command-config   {CLIENT}.properties             {ADMIN}.properties",
        f"  librdkafka               {CLIENT}.librdkafka.properties  {ADMIN}.librdkafka.properties",
        f"  Spark, format('kaspar')  {CLIENT}.spark.json             {ADMIN}.spark.json",
        f"'{CLIENT}' may create, read and write all topics; '{ADMIN}' may do everything, and add users and ACLs.",
    ]
    if plan.services:
        lines.append(f"The same users log in to the services above. Their passwords are in {_passwords_file(folder)};")
        lines.append(f"browsers and curl --cacert can verify the services with {trusted_certificate(folder)}.")
    if not with_passwords:
        return lines
    (access,) = [each for each in client_access(folder, plan) if each.user == CLIENT]
    shown = {"Java": access.java, "librdkafka": access.librdkafka, "Spark": access.spark}
    for name, settings in shown.items():
        lines += ["", f"{name}:"]
        lines += [f"  {key}={value}" for key, value in settings.items() if not value.startswith("-----BEGIN")]
    return [*lines, f"  kafka.ssl.truststore.certificates=(the content of {trusted_certificate(folder)})"]
