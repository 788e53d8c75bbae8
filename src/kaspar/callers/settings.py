"""Settings of services that may log in to brokers with the identities of their callers, and the properties of their
clients.
"""

from collections.abc import Collection, Mapping

from kaspar.config.checks import at_least
from kaspar.config.declaration import Importance, Settings, setting
from kaspar.config.kinds import BOOLEAN, INT


class IdentitySettings(Settings):
    kaspar_propagate_identity: bool = setting(
        BOOLEAN,
        False,
        importance=Importance.HIGH,
        doc="Whether requests are sent to brokers with the caller's own credentials: the name and password of "
        "`BASIC` by the "
        "mechanism of `client.sasl.mechanism`, the token of `BEARER` by OAUTHBEARER. Needs `client.security.protocol` "
        "of SASL_SSL or SASL_PLAINTEXT.",
    )
    kaspar_identity_clients: int = setting(
        INT,
        50,
        at_least(1),
        doc="The number of callers for which Kafka clients are kept if identities are propagated. The least "
        "recently used are closed first.",
    )


def properties_behind(values: Mapping[str, str], *prefixes: str, declared: Collection[str]) -> dict[str, str]:
    """The client properties behind these prefixes. The last prefix takes precedence. Names in `declared` are settings
    of the service itself, and are left out."""
    return {
        name.removeprefix(prefix): value
        for prefix in prefixes
        for name, value in values.items()
        if name.startswith(prefix) and name not in declared
    }


def without_protocols(servers: str) -> str:
    """Removes the protocols of `PLAINTEXT://host:9092`, which Confluent's services accept: `client.security.protocol`
    decides the protocol.
    """
    return ",".join(each.strip().rpartition("://")[2] for each in servers.split(","))
