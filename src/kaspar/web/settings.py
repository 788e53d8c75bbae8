"""Settings that every HTTP service has, with Confluent's names. Names that Confluent does not have begin with
`kaspar.http.`.

A service's own table is a subclass:

    class RegistrySettings(WebSettings):
        listeners: tuple[str, ...] = listeners_setting(8081)
        passed_on = ("kafkastore.",)
"""

import difflib
from collections.abc import Mapping
from typing import Any, ClassVar, Final, Self

from kaspar.base.errors import InvalidSetting
from kaspar.config.checks import at_least, one_of_in_any_case
from kaspar.config.declaration import Importance, Settings, parse_values, setting
from kaspar.config.kinds import BOOLEAN, INT, LIST, LONG, PASSWORD, STRING
from kaspar.config.reasons import NO_PLUGINS, OPENSSL_DECIDES
from kaspar.config.units import KIB, MIB

NO_AUTHENTICATION: Final = "NONE"
_HTTP_1: Final = "HTTP/1.1 is served."
_METRICS: Final = "There is no JMX."
_ALMOST_EQUAL: Final = 0.9
"""How similar a name that is passed on must be to a known setting to be reported as a possible typing error."""
_FORMER_CLIENT_AUTH: Final = {
    "false": "none",
    "true": "required",
    "none": "none",
    "requested": "requested",
    "required": "required",
}


def listeners_setting(port: int) -> tuple[str, ...]:
    """Declares `listeners` with a service's own port, on the loopback address."""
    return setting(
        LIST,
        (f"http://127.0.0.1:{port}",),
        importance=Importance.HIGH,
        doc="Where the service listens: `http://host:port` or `https://host:port`, several separated by commas. "
        "`0.0.0.0` and `[::]` listen on every address. Port 0 chooses a free one.",
    )


class ListenerSettings(Settings):
    listeners: tuple[str, ...] = listeners_setting(8080)
    port: int | None = setting(
        INT, None, doc="The port of a listener on every address, without TLS. `listeners` takes precedence."
    )
    listener_protocol_map: tuple[str, ...] = setting(
        LIST, (), doc="The scheme of each listener whose name is neither `http` nor `https`: `NAME:scheme`."
    )
    kaspar_http_allowed_hosts: tuple[str, ...] = setting(
        LIST,
        (),
        doc="The host names that requests may use if the service listens only on the loopback address and has no "
        "authentication, in addition to `localhost`, the names of this machine and of `listeners`, and any IP address. "
        "Requests for other hosts are rejected with status 421, which prevents DNS rebinding by other sites.",
    )
    idle_timeout_ms: int = setting(LONG, 30_000, at_least(1), doc="How long an idle connection is kept open.")
    shutdown_graceful_ms: int = setting(
        LONG, 1_000, at_least(0), doc="How long requests in progress may take to complete when the service is stopped."
    )
    server_connection_limit: int = setting(
        INT,
        2_000,
        at_least(1),
        doc="The maximum number of connections. Beyond it, the connection that has been idle longest is closed, "
        "idle ones before those with a request in progress.",
    )
    kaspar_http_max_requests: int = setting(
        INT, 500, at_least(1), doc="The maximum number of requests in progress. Further ones get the status 503."
    )
    kaspar_http_max_head_bytes: int = setting(
        INT, 32 * KIB, at_least(1_000), doc="The maximum size of the request line and the headers of a request."
    )
    kaspar_http_max_body_bytes: int = setting(
        INT, 64 * MIB, at_least(1), doc="The maximum size of a request body. A larger one gets the status 413."
    )
    kaspar_http_head_timeout_ms: int = setting(
        LONG, 10_000, at_least(1), doc="How long a client may take for a TLS handshake and the headers of a request."
    )
    kaspar_http_body_timeout_ms: int = setting(
        LONG,
        60_000,
        at_least(1),
        doc="How long a client may take to send the body of a request. For requests that stream records, as REST v3 "
        "allows, `idle.timeout.ms` limits the pauses instead.",
    )
    kaspar_http_unread_timeout_ms: int = setting(
        LONG, 60_000, at_least(1), doc="How long a client may leave a response unread before its connection is closed."
    )
    kaspar_http_request_log: bool = setting(
        BOOLEAN, False, doc="Whether each request is written to the log: client, method, path, status and duration."
    )
    kaspar_http_metrics_path: str = setting(
        STRING,
        "/metrics",
        doc="The path of the service's request metrics for Prometheus; it requires the service's authentication. "
        "Empty disables it.",
    )


class LogInSettings(Settings):
    authentication_method: str = setting(
        STRING,
        NO_AUTHENTICATION,
        one_of_in_any_case(NO_AUTHENTICATION, "BASIC", "BEARER"),
        importance=Importance.HIGH,
        doc="How callers authenticate: `BASIC` by `kaspar.http.credentials.file`, `BEARER` by the tokens of that file "
        "or, without one, by JWTs signed with the keys of `sasl.oauthbearer.jwks.endpoint.url`.",
    )
    authentication_realm: str = setting(STRING, "", doc="The realm sent to unauthenticated callers.")
    authentication_skip_paths: tuple[str, ...] = setting(
        LIST, (), doc="Paths that need no authentication. A trailing `*` matches any suffix."
    )
    authentication_roles: tuple[str, ...] = setting(
        LIST, ("*",), not_honoured="Every user of the credentials file may log in.", doc="The roles that may log in."
    )
    kaspar_http_credentials_file: str = setting(
        STRING,
        "",
        doc="A file with the users who may log in, reloaded when it changes: for `BASIC` a line `name:password` for "
        "each user, for `BEARER` a line `token` or `name:token`. Passwords may be hashed, and Karapace's user file "
        "is accepted too (docs/services.md).",
    )
    sasl_oauthbearer_jwks_endpoint_url: str | None = setting(
        STRING, None, doc="The URL (file:, http: or https:) of the keys that sign the tokens of `BEARER`."
    )
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int = setting(
        LONG, 3_600_000, at_least(1), importance=Importance.LOW, doc="How often these keys are refreshed."
    )
    sasl_oauthbearer_expected_audience: tuple[str, ...] = setting(
        LIST, (), doc="The required audience of a token. Empty accepts any."
    )
    sasl_oauthbearer_expected_issuer: str | None = setting(STRING, None, doc="The required issuer of a token.")
    sasl_oauthbearer_scope_claim_name: str = setting(
        STRING, "scope", importance=Importance.LOW, doc="The claim of a token that lists its scopes."
    )
    sasl_oauthbearer_sub_claim_name: str = setting(
        STRING, "sub", importance=Importance.LOW, doc="The claim of a token that names the caller."
    )
    sasl_oauthbearer_clock_skew_seconds: int = setting(
        INT, 30, at_least(0), importance=Importance.LOW, doc="The allowed clock skew when a token is validated."
    )


class TlsSettings(Settings):
    ssl_keystore_location: str | None = setting(
        STRING, None, importance=Importance.HIGH, doc="The file of the key store, for `https` listeners."
    )
    ssl_keystore_type: str = setting(STRING, "JKS", doc="Its format: `JKS`, `PKCS12` or `PEM`.")
    ssl_keystore_password: str | None = setting(PASSWORD, None, importance=Importance.HIGH, doc="Its password.")
    ssl_key_password: str | None = setting(
        PASSWORD, None, importance=Importance.HIGH, doc="The password of the private key."
    )
    ssl_keystore_key: str | None = setting(PASSWORD, None, doc="The private key, as text.")
    ssl_keystore_certificate_chain: str | None = setting(PASSWORD, None, doc="The certificate chain, as text.")
    ssl_keystore_reload: bool = setting(
        BOOLEAN, True, not_honoured="Changed files are always reloaded.", doc="Whether the files are reloaded."
    )
    ssl_truststore_location: str | None = setting(
        STRING, None, importance=Importance.HIGH, doc="The file with the CA certificates for client certificates."
    )
    ssl_truststore_type: str = setting(STRING, "JKS", doc="Its format: `JKS`, `PKCS12` or `PEM`.")
    ssl_truststore_password: str | None = setting(PASSWORD, None, importance=Importance.HIGH, doc="Its password.")
    ssl_truststore_certificates: str | None = setting(PASSWORD, None, doc="The trusted certificates, as text.")
    ssl_client_authentication: str = setting(
        STRING,
        "NONE",
        one_of_in_any_case("NONE", "REQUESTED", "REQUIRED"),
        doc="Whether clients must present a certificate. Without another authentication, the caller is the "
        "certificate's subject.",
    )
    ssl_client_auth: str = setting(
        STRING,
        "false",
        one_of_in_any_case("false", "true", "none", "requested", "required"),
        importance=Importance.LOW,
        doc="The deprecated name of `ssl.client.authentication`, as in a broker's settings: `true` means `REQUIRED`.",
    )
    ssl_enabled_protocols: tuple[str, ...] = setting(
        LIST, ("TLSv1.2", "TLSv1.3"), doc="The TLS protocols a connection may use."
    )
    ssl_cipher_suites: tuple[str, ...] = setting(
        LIST, (), importance=Importance.LOW, doc="The cipher suites a connection may use."
    )
    ssl_principal_mapping_rules: str = setting(
        STRING,
        "DEFAULT",
        importance=Importance.LOW,
        doc="Rules that map the subject of a certificate to a caller's name, as for brokers.",
    )
    ssl_endpoint_identification_algorithm: str | None = setting(
        STRING,
        None,
        importance=Importance.LOW,
        doc="How the host names of other servers are verified when the service is an HTTPS client. Empty disables "
        "verification.",
    )
    ssl_protocol: str = setting(STRING, "TLS", not_honoured=OPENSSL_DECIDES, doc="The TLS protocol.")
    ssl_provider: str = setting(STRING, "", not_honoured=OPENSSL_DECIDES, doc="The provider of TLS.")
    ssl_keymanager_algorithm: str = setting(STRING, "", not_honoured=OPENSSL_DECIDES, doc="The key manager.")
    ssl_trustmanager_algorithm: str = setting(STRING, "", not_honoured=OPENSSL_DECIDES, doc="The trust manager.")


class OtherSettings(Settings):
    """Settings that Confluent's services share and that have no effect here, and the settings of the log."""

    http2_enabled: bool = setting(BOOLEAN, False, not_honoured=_HTTP_1, doc="Whether HTTP/2 is served.")
    compression_enable: bool = setting(
        BOOLEAN, False, not_honoured="Responses are not compressed.", doc="Whether responses are compressed with gzip."
    )
    debug: bool = setting(
        BOOLEAN, False, not_honoured="Tracebacks are in the log only.", doc="Whether error responses have more details."
    )
    thread_pool_min: int = setting(INT, 8, not_honoured="One thread serves all requests.", doc="The fewest threads.")
    thread_pool_max: int = setting(
        INT, 200, not_honoured="kaspar.http.max.requests limits the requests in progress.", doc="The most threads."
    )
    request_logger_name: str = setting(
        STRING, "", not_honoured="kaspar.http.request.log turns the log of requests on.", doc="The logger of requests."
    )
    resource_extension_classes: tuple[str, ...] = setting(LIST, (), not_honoured=NO_PLUGINS, doc="Java plug-ins.")
    metrics_jmx_prefix: str = setting(STRING, "", not_honoured=_METRICS, doc="The prefix of JMX metrics.")
    metric_reporters: tuple[str, ...] = setting(LIST, (), not_honoured=NO_PLUGINS, doc="Classes that report metrics.")
    kaspar_log_file: str = setting(
        STRING, "", doc="A file for the service's log as JSON lines, in addition to the terminal. Empty writes none."
    )
    kaspar_log_level: str = setting(
        STRING,
        "INFO",
        one_of_in_any_case("DEBUG", "INFO", "WARNING", "ERROR"),
        importance=Importance.LOW,
        doc="The minimum level of the service's log.",
    )


class WebSettings(ListenerSettings, LogInSettings, TlsSettings, OtherSettings):
    """The table that services extend. Instances are typed and frozen."""

    passed_on: ClassVar[tuple[str, ...]] = ()
    """Prefixes of settings that the service passes on to its Kafka clients. They are not reported as unknown."""

    @classmethod
    def of(cls, values: Mapping[str, str]) -> Self:
        """Parse the values. Ignores unknown names, which `warnings_about` reports. Raises InvalidSetting."""
        parsed = parse_values(cls.declared, values)
        if parsed.get("port") is not None and "listeners" not in parsed:
            parsed["listeners"] = (f"http://0.0.0.0:{parsed['port']}",)
        settings = cls(**parsed)
        settings.check_together()
        return settings

    def check_together(self) -> None:
        """Check rules between settings. Raises InvalidSetting. A subclass adds its own rules."""
        method = self.authentication_method.upper()
        if method == "BASIC" and not self.kaspar_http_credentials_file:
            raise InvalidSetting("authentication.method=BASIC needs kaspar.http.credentials.file")
        if (
            method == "BEARER"
            and not self.kaspar_http_credentials_file
            and self.sasl_oauthbearer_jwks_endpoint_url is None
        ):
            raise InvalidSetting(
                "authentication.method=BEARER needs sasl.oauthbearer.jwks.endpoint.url or kaspar.http.credentials.file"
            )

    @property
    def allowed_hosts(self) -> tuple[str, ...]:
        """The additional host names that requests may use. A subclass adds names from its own settings."""
        return self.kaspar_http_allowed_hosts

    @property
    def client_auth(self) -> str:
        """none, requested or required, whichever of the two settings was used."""
        chosen = self.ssl_client_authentication.lower()
        return chosen if chosen != "none" else _FORMER_CLIENT_AUTH[self.ssl_client_auth.lower()]

    def texts(self, prefix: str) -> dict[str, str]:
        """The settings with this prefix as strings, without those that have no value."""
        values: dict[str, Any] = {
            name: declaration.format(getattr(self, declaration.attribute))
            for name, declaration in self.declared.items()
            if name.startswith(prefix)
        }
        return {name: text for name, text in values.items() if text is not None}

    @classmethod
    def warnings_about(cls, values: Mapping[str, str]) -> list[str]:
        """A sentence for each unknown name and each setting that has no effect, in the order of the file."""
        sentences = []
        for name in values:
            declaration = cls.declared.get(name)
            if declaration is not None:
                if declaration.not_honoured:
                    sentences.append(f"{name} has no effect: {declaration.not_honoured}")
            elif name.startswith(cls.passed_on):
                own = [
                    known
                    for known, each in cls.declared.items()
                    if known.startswith(cls.passed_on) and not each.not_honoured
                ]
                if closest := difflib.get_close_matches(name, own, n=1, cutoff=_ALMOST_EQUAL):
                    sentences.append(f"{name} is passed to the client unchanged. Did you mean {closest[0]}?")
            elif not name.startswith("config.providers"):
                closest = difflib.get_close_matches(name, cls.declared, n=1, cutoff=0.7)
                meant = f" Did you mean {closest[0]}?" if closest else ""
                sentences.append(f"{name} is not a known setting and has no effect.{meant}")
        return sentences
