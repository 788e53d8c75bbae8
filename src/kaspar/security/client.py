"""How a client protects its connections and authenticates, from the properties of Java clients: security.protocol,
ssl.*, sasl.mechanism, sasl.jaas.config.
"""

import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from kaspar.base.errors import InvalidSetting, KasparError
from kaspar.security.jaas import LoginModule, parse_jaas
from kaspar.security.krb5_login_module import MODULE, KerberosLogin, kerberos_login, service_name
from kaspar.security.oauthbearer import OAuthBearerClient, unsecured_token
from kaspar.security.plain import PlainClient
from kaspar.security.sasl import GSSAPI, OAUTHBEARER, PLAIN, SaslClient
from kaspar.security.scram import HASHES, ScramClient
from kaspar.security.tls import client_context, failure_sentence

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_PASSWORD_EXAMPLE: Final = (
    'org.apache.kafka.common.security.scram.ScramLoginModule required username="..." password="...";'
)
_KERBEROS_EXAMPLE: Final = f"{MODULE} required useTicketCache=true;"


@dataclass(frozen=True, slots=True)
class KerberosClient:
    """The login for GSSAPI, and the service name of the brokers."""

    login: KerberosLogin
    service: str


class HandshakeFailed(KasparError):
    """The TLS handshake failed: one side does not accept the other's certificate, or the other side does not use TLS.
    Not an OSError, because retrying would not help.
    """


@dataclass(frozen=True, slots=True)
class ClientSecurity:
    """`tls` is None for unencrypted connections, `mechanism` is empty if the client does not authenticate."""

    protocol: str
    tls: ssl.SSLContext | None = field(repr=False)
    mechanism: str = ""
    login: LoginModule | None = field(default=None, repr=False)
    token_file: Path | None = None
    """Read for every authentication by OAUTHBEARER, so that another program can renew the token in it."""
    kerberos: KerberosClient | None = None

    def wrap(self, plain: socket.socket, host: str) -> socket.socket:
        """The socket for requests of a blocking connection. Raises HandshakeFailed."""
        if self.tls is None:
            return plain
        port = plain.getpeername()[1]
        try:
            return self.tls.wrap_socket(plain, server_hostname=host)
        except ssl.SSLError as problem:
            raise handshake_failed(f"{host}:{port}", problem) from None

    def explain(self, problem: OSError, peer: str) -> OSError | HandshakeFailed:
        """The error of a failed first exchange. In TLS 1.3 the broker rejects a client certificate only after the
        handshake, as the client sees it.
        """
        return handshake_failed(peer, problem) if isinstance(problem, ssl.SSLError) else problem

    @property
    def log_in_blocks(self) -> bool:
        """Whether the client's side of authentication also waits for other machines: the KDC."""
        return self.kerberos is not None

    def new_login(self, host: str) -> SaslClient | None:
        """The client's side of authentication with the broker of this host; None if there is no authentication."""
        if not self.mechanism:
            return None
        if self.kerberos is not None:
            from kaspar.security.kerberos import GssapiClient

            return GssapiClient(self.kerberos.login, self.kerberos.service, host)
        login = self.login
        options = {} if login is None else login.options
        username, password = options.get("username", ""), options.get("password", "")
        if self.mechanism == PLAIN:
            return PlainClient(username, password)
        if self.mechanism == OAUTHBEARER:
            return OAuthBearerClient(self._bearer_token(options))
        token_auth = options.get("tokenauth", "").lower() == "true"
        return ScramClient(self.mechanism, username, password, token_auth=token_auth)

    def _bearer_token(self, options: Mapping[str, str]) -> str:
        if self.token_file is None:
            return unsecured_token(options)
        try:
            return self.token_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            raise InvalidSetting(f"the token in {self.token_file} cannot be read") from None


def client_security(properties: Mapping[str, str]) -> ClientSecurity | None:
    """The security that the properties specify; None for PLAINTEXT. Raises InvalidSetting."""
    protocol = properties.get("security.protocol", "PLAINTEXT").strip().upper()
    if protocol not in PROTOCOLS:
        raise InvalidSetting(
            f"Invalid value {protocol} for configuration security.protocol: one of {', '.join(PROTOCOLS)} is known"
        )
    if protocol == "PLAINTEXT":
        return None
    tls = client_context(properties) if protocol.endswith("SSL") else None
    if not protocol.startswith("SASL"):
        return ClientSecurity(protocol, tls)
    mechanism = properties.get("sasl.mechanism", GSSAPI).strip()
    login = login_module(mechanism, properties)
    kerberos = _kerberos(login, properties) if mechanism == GSSAPI else None
    return ClientSecurity(protocol, tls, mechanism, login, _token_file(mechanism, properties), kerberos)


def login_module(mechanism: str, properties: Mapping[str, str]) -> LoginModule:
    """The login module of sasl.jaas.config. Raises InvalidSetting."""
    if mechanism not in (PLAIN, OAUTHBEARER, GSSAPI, *HASHES):
        raise InvalidSetting(
            f"Invalid value {mechanism} for configuration sasl.mechanism: "
            f"{', '.join((PLAIN, *HASHES, OAUTHBEARER, GSSAPI))} are supported"
        )
    text = properties.get("sasl.jaas.config")
    if not text:
        raise InvalidSetting(
            f"sasl.jaas.config is required for {mechanism}: no login module says who logs in, as in "
            + (_KERBEROS_EXAMPLE if mechanism == GSSAPI else _PASSWORD_EXAMPLE)
        )
    login = parse_jaas(text)
    if mechanism in (OAUTHBEARER, GSSAPI):
        return login
    if missing := [name for name in ("username", "password") if name not in login.options]:
        raise InvalidSetting(f"the login module of sasl.jaas.config lacks {' and '.join(missing)}")
    return login


def handshake_failed(peer: str, problem: ssl.SSLError) -> HandshakeFailed:
    return HandshakeFailed(f"SSL handshake with {peer} failed: {failure_sentence(problem)}")


def _kerberos(login: LoginModule, properties: Mapping[str, str]) -> KerberosClient:
    client = KerberosClient(kerberos_login(login), service_name(properties, login))
    import kaspar.security.kerberos  # noqa: F401  # says what is missing before the first connection does

    return client


def _token_file(mechanism: str, properties: Mapping[str, str]) -> Path | None:
    url = properties.get("sasl.oauthbearer.token.endpoint.url", "").strip()
    if mechanism != OAUTHBEARER or not url:
        return None
    parts = urlsplit(url)
    if parts.scheme != "file":
        raise InvalidSetting(
            "sasl.oauthbearer.token.endpoint.url must be a file: this client asks no server for tokens"
        )
    return Path(unquote(parts.path))
