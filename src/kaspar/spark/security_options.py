"""Options that encrypt connections and log in: `kafka.security.protocol`, `kafka.ssl.*` and `kafka.sasl.*`, which have
the names and the meaning of Java's clients.

Each of them has an effect or is rejected: a connection is never less protected than its options say. Their values are
secrets. No error message of this module contains one, except protocols and mechanisms, and no value is part of a repr.

Spark shows the options of a query in its plans, and so in its web UI and event log. It replaces those whose name or
value matches spark.redaction.regex, by default `(?i)secret|password|token|access[.]?key`. That covers passwords and
login modules, but not a private key: an option may only contain an encrypted one. REDACTED is the recommended value of
spark.sql.redaction.options.regex, with which redaction does not depend on words in a value.
"""

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import InvalidSetting, KasparError

if TYPE_CHECKING:
    from kaspar.security.client import ClientSecurity

PREFIX: Final = "kafka."

SECURITY_OPTIONS: Final = (
    "kafka.security.protocol",
    "kafka.ssl.truststore.type",
    "kafka.ssl.truststore.location",
    "kafka.ssl.truststore.password",
    "kafka.ssl.truststore.certificates",
    "kafka.ssl.keystore.type",
    "kafka.ssl.keystore.location",
    "kafka.ssl.keystore.password",
    "kafka.ssl.keystore.key",
    "kafka.ssl.keystore.certificate.chain",
    "kafka.ssl.key.password",
    "kafka.ssl.enabled.protocols",
    "kafka.ssl.cipher.suites",
    "kafka.ssl.endpoint.identification.algorithm",
    "kafka.sasl.mechanism",
    "kafka.sasl.jaas.config",
    "kafka.sasl.oauthbearer.token.endpoint.url",
)
"""The options that have an effect."""

_JAVA_CLASS: Final = "it names Java classes, but this client is not written in Java"
_LOG_IN: Final = "user and password are part of kafka.sasl.jaas.config"
_KERBEROS: Final = "GSSAPI (Kerberos) is not supported"
_TOKENS: Final = (
    "this client does not fetch tokens from servers: set kafka.sasl.oauthbearer.token.endpoint.url to the file: "
    "that holds one"
)
REFUSED: Final = {
    "config.providers": "its references are not resolved: pass the values themselves",
    "security.providers": _JAVA_CLASS,
    "ssl.protocol": "use kafka.ssl.enabled.protocols",
    "ssl.provider": _JAVA_CLASS,
    "ssl.engine.factory.class": _JAVA_CLASS,
    "ssl.keymanager.algorithm": _JAVA_CLASS,
    "ssl.trustmanager.algorithm": _JAVA_CLASS,
    "ssl.secure.random.implementation": _JAVA_CLASS,
    "sasl.client.callback.handler.class": _JAVA_CLASS,
    "sasl.login.callback.handler.class": _JAVA_CLASS,
    "sasl.login.class": _JAVA_CLASS,
    "sasl.username": _LOG_IN,
    "sasl.password": _LOG_IN,
    "ssl.ca.location": "use kafka.ssl.truststore.location, with kafka.ssl.truststore.type = PEM",
    "sasl.oauthbearer.jwks.endpoint.url": "brokers validate tokens, not clients",
    "sasl.kerberos.service.name": _KERBEROS,
    "sasl.kerberos.kinit.cmd": _KERBEROS,
    "sasl.kerberos.min.time.before.relogin": _KERBEROS,
    "sasl.kerberos.ticket.renew.jitter": _KERBEROS,
    "sasl.kerberos.ticket.renew.window.factor": _KERBEROS,
}
"""Settings of Java's clients, and some of librdkafka, that are rejected, with the reasons."""

REDACTED: Final = r"(?i)url|jaas|keystore[.]key|password|certificate|user[.]info|token|secret"
"""The names of options to redact: `(?i)url`, which is Spark's own default for options, and ours."""

_PREFIXES: Final = ("security.", "ssl.", "sasl.")
_KEY: Final = "ssl.keystore.key"
_PROTOCOL: Final = "security.protocol"
_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_OAUTHBEARER: Final = "OAUTHBEARER"


class InvalidOption(KasparError):
    """An option of the data source that cannot be used. The text is for the author of the query."""


@dataclass(frozen=True, slots=True)
class SecurityOptions:
    """How connections are protected: PLAINTEXT if there are no properties."""

    protocol: str = "PLAINTEXT"
    properties: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """The properties with the names of Java's clients, sorted. They contain secrets."""

    @staticmethod
    def of(settings: Mapping[str, str]) -> "SecurityOptions":
        """Check Kafka's settings, without their prefix. Raises InvalidOption. Reads no files, because those of the
        tasks are on other machines.
        """
        given = {name: value for name, value in settings.items() if name.startswith(_PREFIXES) or name in REFUSED}
        for name in given:
            _refuse_without_effect(name)
        protocol = given.get(_PROTOCOL, "PLAINTEXT").strip().upper()
        if protocol not in _PROTOCOLS:
            raise InvalidOption(f"Option '{PREFIX}{_PROTOCOL}' must be one of {', '.join(_PROTOCOLS)}.")
        for name in given:
            _refuse_if_unused(name, protocol)
        refuse_readable_key(given.get(_KEY, ""))
        if protocol.startswith("SASL"):
            _check_log_in(given)
        if protocol == "PLAINTEXT":
            return SecurityOptions()
        return SecurityOptions(protocol, tuple(sorted(given.items())))

    def load(self) -> "ClientSecurity | None":
        """The security settings of a client, from the files of this machine. Raises InvalidOption."""
        if not self.properties:
            return None
        from kaspar.security.client import client_security  # not needed for unencrypted connections

        try:
            return client_security(dict(self.properties))
        except InvalidSetting as problem:
            raise InvalidOption(
                f"The options {PREFIX}ssl.* and {PREFIX}sasl.* cannot be used on {socket.gethostname()}: {problem}."
            ) from None


def refuse_readable_key(key: str) -> None:
    """Raises InvalidOption if a private key in PEM is not encrypted. `key` is empty if the option is not given."""
    if key and "ENCRYPTED" not in key:
        raise InvalidOption(
            f"Option '{PREFIX}{_KEY}' holds a private key that is not encrypted, and Spark would show it in query "
            f"plans: encrypt it (openssl pkcs8 -topk8) and set {PREFIX}ssl.key.password, or use "
            f"{PREFIX}ssl.keystore.location."
        )


def _refuse_without_effect(name: str) -> None:
    if f"{PREFIX}{name}" in SECURITY_OPTIONS:
        return
    reason = REFUSED.get(name)
    if reason is None:
        reason = _TOKENS if name.startswith(("sasl.oauthbearer.", "sasl.login.")) else "this client does not support it"
    raise InvalidOption(f"Option '{PREFIX}{name}' is not supported: {reason}.")


def _refuse_if_unused(name: str, protocol: str) -> None:
    """Refuse an option that the protocol does not use: most likely the protocol was forgotten."""
    kind = name.partition(".")[0].upper()
    if kind in ("SSL", "SASL") and kind not in protocol.split("_"):
        those = " or ".join(each for each in _PROTOCOLS if kind in each.split("_"))
        raise InvalidOption(
            f"Option '{PREFIX}{name}' has no effect with {PREFIX}{_PROTOCOL} = {protocol}: set that to {those}."
        )


def _check_log_in(given: Mapping[str, str]) -> None:
    mechanism = given.get("sasl.mechanism", "").strip()
    if mechanism not in _MECHANISMS:
        raise InvalidOption(f"Option '{PREFIX}sasl.mechanism' must be one of {', '.join(_MECHANISMS)}.")
    if "sasl.jaas.config" not in given:
        raise InvalidOption(
            f"Option '{PREFIX}sasl.jaas.config' must be given: it says who logs in, as in "
            'org.apache.kafka.common.security.scram.ScramLoginModule required username="..." password="...";'
        )
    if mechanism != _OAUTHBEARER and "sasl.oauthbearer.token.endpoint.url" in given:
        raise InvalidOption(
            f"Option '{PREFIX}sasl.oauthbearer.token.endpoint.url' has no effect with {PREFIX}sasl.mechanism = "
            f"{mechanism}."
        )
