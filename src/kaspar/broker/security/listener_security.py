"""The security of one listener, from its settings: TLS, SASL, and the principals of its clients.

A broker does not start with invalid settings. Changes at run time apply to new connections; invalid changes are logged,
and the old settings stay in use.
"""

import ssl
from collections.abc import Callable, Mapping
from typing import Final

from kaspar.base.errors import InvalidSetting
from kaspar.base.log import get_log
from kaspar.broker.security.credentials import Credentials
from kaspar.broker.security.mechanisms import new_servers
from kaspar.broker.security.tls_files import TlsFiles
from kaspar.broker.services import CurrentSettings, Threads
from kaspar.config import BrokerConfig, Endpoint
from kaspar.network.authentication import SaslAuthenticator, SaslTerms
from kaspar.network.authentication_metrics import AuthenticationMetrics, TlsKind
from kaspar.network.connection import Connection
from kaspar.network.gates import Principal, Rejected
from kaspar.security.cipher_suites import iana_name
from kaspar.security.principal_names import NoMatchingRule, PrincipalMapping, subject_of
from kaspar.security.tls import alert_of, failure_sentence

log = get_log(__name__)

_MAX_REAUTH: Final = BrokerConfig.declared["connections.max.reauth.ms"]
_MAX_RECEIVE: Final = BrokerConfig.declared["sasl.server.max.receive.size"]
_FAILURE_DELAY: Final = BrokerConfig.declared["connection.failed.authentication.delay.ms"]


class SecureListener:
    """Implements `ListenerSecurity`."""

    def __init__(
        self,
        endpoint: Endpoint,
        settings: CurrentSettings,
        credentials: Credentials,
        now_ms: Callable[[], int],
        threads: Threads,
    ) -> None:
        """Raises InvalidSetting with a message."""
        self._name = endpoint.listener
        self._settings = settings
        self._credentials = credentials
        self._now_ms = now_ms
        self._threads = threads
        self._protocol = endpoint.security_protocol
        self._has_sasl = endpoint.security_protocol.startswith("SASL")
        self.metrics = AuthenticationMetrics()
        try:
            values = self._values()
            self._mapping = PrincipalMapping(values.get("ssl.principal.mapping.rules", "DEFAULT"))
            self._tls = (
                TlsFiles(self._name, values, self._client_auth(values))
                if endpoint.security_protocol.endswith("SSL")
                else None
            )
            self._terms = self._sasl_terms() if self._has_sasl else None
        except InvalidSetting as problem:
            raise InvalidSetting(f"listener {self._name}: {problem}") from None

    def reconfigure(self) -> None:
        """Apply changed settings."""
        try:
            values = self._values()
            if self._tls is not None:
                self._tls.replace(values, self._client_auth(values))
            self._terms = self._sasl_terms() if self._has_sasl else None
        except InvalidSetting as problem:
            log.error("changed settings of a listener cannot be used", listener=self._name, problem=str(problem))

    # -- what a listener asks ----------------------------------------------------------------------------------------

    def tls_context(self) -> ssl.SSLContext | None:
        return None if self._tls is None else self._tls.context()

    def opened(self, connection: Connection) -> None:
        connection.security_protocol = self._protocol
        session: ssl.SSLObject | None = connection.transport.get_extra_info("ssl_object")
        if session is not None:
            self.metrics.encrypted(connection, _kind_of(session))
        if self._terms is not None:
            connection.authenticator = SaslAuthenticator(connection, self._terms, self._now_ms)
        else:
            self._authenticate_by_certificate(connection, session)

    def closed(self, connection: Connection) -> None:
        self.metrics.closed(connection)

    def handshake_failed(self, peer: str, listener: str, problem: OSError) -> bytes:
        if isinstance(problem, ConnectionError) and not isinstance(problem, ConnectionAbortedError):
            # Nothing was sent: it was only a check whether the port is open.
            log.debug("a connection was closed before its TLS handshake", peer=peer, listener=listener)
            return b""
        self.metrics.failed.mark()
        log.info("a TLS handshake failed", peer=peer, listener=listener, reason=failure_sentence(problem))
        return alert_of(problem)

    # -- from settings -----------------------------------------------------------------------------------------------

    def _values(self) -> Mapping[str, str]:
        return self._settings.settings.listener_values(self._name)

    def _client_auth(self, values: Mapping[str, str]) -> str:
        """The client authentication by TLS. On a listener with SASL, certificates are only requested if the listener's
        own settings say so.
        """
        own = self._settings.settings.own_listener_values(self._name)
        return (own if self._has_sasl else values).get("ssl.client.auth", "none").strip().lower()

    def _sasl_terms(self) -> SaslTerms:
        settings, values = self._settings.settings, self._values()
        mechanisms = new_servers(settings, self._name, self._credentials)
        return SaslTerms(
            mechanisms=mechanisms,
            max_reauth_ms={
                name: _MAX_REAUTH.parse(settings.listener_values(self._name, name).get(_MAX_REAUTH.name, "0"))
                for name in mechanisms
            },
            max_receive_bytes=_MAX_RECEIVE.parse(values.get(_MAX_RECEIVE.name, str(_MAX_RECEIVE.default))),
            failure_delay_ms=_FAILURE_DELAY.parse(values.get(_FAILURE_DELAY.name, str(_FAILURE_DELAY.default))),
            metrics=self.metrics,
            run_in_thread=self._threads.run_authenticating,
        )

    def _authenticate_by_certificate(self, connection: Connection, session: ssl.SSLObject | None) -> None:
        if session is None:
            raise Rejected("the connection is not encrypted")
        try:
            connection.principal = self._principal_of(session)
        except Rejected:
            self.metrics.failed.mark()
            raise
        self.metrics.succeeded.mark()
        self.metrics.succeeded_without_reauthentication += 1

    def _principal_of(self, session: ssl.SSLObject) -> Principal | None:
        """The principal of a certificate. None without one: the client is anonymous, and unidentified until its first
        request, like a client of a listener without TLS.
        """
        certificate = session.getpeercert(binary_form=True)
        if certificate is None:
            return None
        try:
            return Principal("User", self._mapping.name_of(subject_of(certificate)))
        except (NoMatchingRule, ValueError) as problem:
            raise Rejected(str(problem)) from None


def _kind_of(session: ssl.SSLObject) -> TlsKind:
    suite = session.cipher()
    return TlsKind("unknown" if suite is None else iana_name(suite[0]), session.version() or "unknown")
