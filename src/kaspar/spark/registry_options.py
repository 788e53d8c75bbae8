"""Options that say how to connect to the schema registry: Confluent's properties of its clients, as
serialization/registry_config.py lists them, each with or without the prefix `schema.registry.`.

`sasl.jaas.config`, for SASL_INHERIT, is that of the connection to the brokers. Passwords, tokens and secrets are
treated as those of security_options.py.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import InvalidSetting
from kaspar.spark.security_options import InvalidOption

if TYPE_CHECKING:
    from kaspar.serialization.registry_config import RegistryConfig

URL: Final = "schema.registry.url"
_PREFIX: Final = "schema.registry."
_UNPREFIXED: Final = (
    "basic.auth.credentials.source",
    "basic.auth.user.info",
    "bearer.auth.credentials.source",
    "bearer.auth.token",
    "bearer.auth.issuer.endpoint.url",
    "bearer.auth.client.id",
    "bearer.auth.client.secret",
    "bearer.auth.scope",
    "bearer.auth.logical.cluster",
    "bearer.auth.identity.pool.id",
    "http.connect.timeout.ms",
    "http.read.timeout.ms",
    "max.retries",
    "retries.wait.ms",
    "retries.max.wait.ms",
    "max.schemas.per.subject",
    "latest.cache.size",
    "latest.cache.ttl.sec",
    "missing.id.cache.ttl.sec",
    "proxy.host",
    "proxy.port",
)
_TLS: Final = (
    "schema.registry.ssl.truststore.type",
    "schema.registry.ssl.truststore.location",
    "schema.registry.ssl.truststore.password",
    "schema.registry.ssl.truststore.certificates",
    "schema.registry.ssl.keystore.type",
    "schema.registry.ssl.keystore.location",
    "schema.registry.ssl.keystore.password",
    "schema.registry.ssl.keystore.key",
    "schema.registry.ssl.keystore.certificate.chain",
    "schema.registry.ssl.key.password",
    "schema.registry.ssl.enabled.protocols",
    "schema.registry.ssl.cipher.suites",
    "schema.registry.ssl.endpoint.identification.algorithm",
)
REGISTRY_OPTIONS: Final = (URL, *_UNPREFIXED, *(f"{_PREFIX}{name}" for name in _UNPREFIXED), *_TLS)


def registry_of(options: Mapping[str, str]) -> "RegistryConfig | None":
    """The registry in the options of a query, with case-insensitive names; None if not given. Raises InvalidOption."""
    given = {name.lower(): value for name, value in options.items()}
    if not given.get(URL, "").strip():
        return None
    from kaspar.serialization.registry_config import registry_config  # most queries have no registry

    properties = {name: given[name] for name in REGISTRY_OPTIONS if name in given}
    if "kafka.sasl.jaas.config" in given:
        properties["sasl.jaas.config"] = given["kafka.sasl.jaas.config"]
    try:
        return registry_config(properties)
    except InvalidSetting as problem:
        raise InvalidOption(f"The options of the schema registry cannot be used: {problem}") from None
