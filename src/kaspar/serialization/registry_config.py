"""How a registry is reached: the properties of Confluent's clients, as a value that can be pickled.

| property | meaning |
|---|---|
| `schema.registry.url` | one or more URLs, separated by commas; `mock://name` is a registry in this process |
| `basic.auth.credentials.source` | `URL` (the default), `USER_INFO` or `SASL_INHERIT` |
| `basic.auth.user.info` | user:password, for `USER_INFO` |
| `bearer.auth.credentials.source` | `STATIC_TOKEN` with `bearer.auth.token`, or `OAUTHBEARER` |
| `bearer.auth.issuer.endpoint.url`, `.client.id`, `.client.secret`, `.scope` | issues tokens, for `OAUTHBEARER` |
| `bearer.auth.logical.cluster`, `bearer.auth.identity.pool.id` | sent with every request |
| `schema.registry.ssl.*` | like Kafka's `ssl.*` properties, for https |
| `http.connect.timeout.ms`, `http.read.timeout.ms` | 60 s each |
| `max.retries`, `retries.wait.ms`, `retries.max.wait.ms` | 3 more attempts, after 1 s, 2 s, ... of at most 20 s |
| `max.schemas.per.subject`, `latest.cache.size` | how many schemas are cached: 1000 each |
| `latest.cache.ttl.sec` | how long the latest version of a subject is cached: 60 s |
| `missing.id.cache.ttl.sec` | how long it is cached that an id is unknown: 1 s |
| `proxy.host`, `proxy.port` | an HTTP proxy |

In the settings of another kind of program, a property may have the prefix `schema.registry.`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote, urlsplit, urlunsplit

from kaspar.base.errors import InvalidSetting
from kaspar.security.jaas import parse_jaas

URL: Final = "schema.registry.url"
_PREFIX: Final = "schema.registry."
_SSL_PREFIX: Final = f"{_PREFIX}ssl."
MOCK: Final = "mock"
_SCHEMES: Final = ("http", "https", MOCK)


@dataclass(frozen=True, slots=True)
class TokenIssuer:
    """The issuer of tokens (OAuth's client credentials grant)."""

    url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str = ""


@dataclass(frozen=True, slots=True)
class RegistryConfig:
    urls: tuple[str, ...]
    """The URLs without credentials."""
    credentials: tuple[tuple[str, str] | None, ...] = field(default=(), repr=False)
    """The user and password for each URL."""
    token: str = field(default="", repr=False)
    issuer: TokenIssuer | None = None
    headers: tuple[tuple[str, str], ...] = ()
    tls: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Kafka's ssl.* properties."""
    proxy: str = ""
    connect_timeout_s: float = 60.0
    read_timeout_s: float = 60.0
    max_retries: int = 3
    retry_wait_s: float = 1.0
    retry_max_wait_s: float = 20.0
    max_schemas: int = 1000
    max_latest: int = 1000
    latest_ttl_s: float = 60.0
    missing_ttl_s: float = 1.0

    @property
    def mock_scope(self) -> str | None:
        """The name of the registry in this process, if it is one."""
        parts = urlsplit(self.urls[0])
        return parts.netloc + parts.path if parts.scheme == MOCK else None


def registry_config(properties: Mapping[str, str]) -> RegistryConfig:
    """Parse the properties. Raises InvalidSetting."""
    given = _Properties(properties)
    texts = [text.strip() for text in properties.get(URL, "").split(",") if text.strip()]
    if not texts:
        raise InvalidSetting(f"Missing schema registry url! Set {URL}, as in {URL}=http://localhost:8081.")
    urls, in_url = zip(*(_url(text) for text in texts), strict=True)
    return RegistryConfig(
        urls=urls,
        credentials=_credentials(given, in_url),
        token=_token(given),
        issuer=_issuer(given),
        headers=_headers(given),
        tls=tuple(
            (f"ssl.{name.removeprefix(_SSL_PREFIX)}", value)
            for name, value in properties.items()
            if name.startswith(_SSL_PREFIX)
        ),
        proxy=_proxy(given),
        connect_timeout_s=given.number("http.connect.timeout.ms", 60_000, least=1) / 1000,
        read_timeout_s=given.number("http.read.timeout.ms", 60_000, least=1) / 1000,
        max_retries=given.number("max.retries", 3),
        retry_wait_s=given.number("retries.wait.ms", 1000) / 1000,
        retry_max_wait_s=given.number("retries.max.wait.ms", 20_000) / 1000,
        max_schemas=given.number("max.schemas.per.subject", 1000, least=1),
        max_latest=given.number("latest.cache.size", 1000, least=1),
        latest_ttl_s=given.seconds("latest.cache.ttl.sec", 60),
        missing_ttl_s=given.number("missing.id.cache.ttl.sec", 1, least=-1),
    )


class _Properties:
    """Looks up properties with or without the prefix."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = properties

    def text(self, name: str, default: str = "") -> str:
        return self._properties.get(f"{_PREFIX}{name}", self._properties.get(name, default)).strip()

    def number(self, name: str, default: int, *, least: int = 0) -> int:
        text = self.text(name, str(default))
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            raise InvalidSetting(f"Invalid value {text} for configuration {name}: a whole number of at least {least}.")
        return value

    def seconds(self, name: str, default: int) -> float:
        """A duration, where -1 means forever."""
        value = self.number(name, default, least=-1)
        return float("inf") if value < 0 else value

    def required(self, name: str, why: str) -> str:
        if not (value := self.text(name)):
            raise InvalidSetting(f"{name} is required with {why}.")
        return value


def _url(text: str) -> tuple[str, tuple[str, str] | None]:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise InvalidSetting(
            f"Invalid value {_without_credentials(text)} for configuration {URL}: it is no URL."
        ) from None
    if parts.scheme not in _SCHEMES or not (parts.hostname or parts.scheme == MOCK):
        raise InvalidSetting(
            f"Invalid value {_without_credentials(text)} for configuration {URL}: http://HOST:PORT or https://HOST:PORT."
        )
    if parts.scheme == MOCK:
        return text, None
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    where = host if port is None else f"{host}:{port}"
    credentials = None if parts.username is None else (unquote(parts.username), unquote(parts.password or ""))
    return urlunsplit((parts.scheme, where, parts.path.rstrip("/"), "", "")), credentials


def _without_credentials(text: str) -> str:
    return text.rpartition("@")[2]


def _credentials(given: _Properties, in_url: tuple[tuple[str, str] | None, ...]) -> tuple[tuple[str, str] | None, ...]:
    match given.text("basic.auth.credentials.source", "URL").upper():
        case "URL":
            return in_url
        case "USER_INFO":
            user, found, password = given.required("basic.auth.user.info", "USER_INFO").partition(":")
            if not found:
                raise InvalidSetting("basic.auth.user.info is a user and a password with a colon between them.")
            return ((user, password),) * len(in_url)
        case "SASL_INHERIT":
            options = parse_jaas(given.required("sasl.jaas.config", "SASL_INHERIT")).options
            return ((options.get("username", ""), options.get("password", "")),) * len(in_url)
        case other:
            raise InvalidSetting(
                f"Invalid value {other} for configuration basic.auth.credentials.source: URL, USER_INFO, SASL_INHERIT."
            )


def _token(given: _Properties) -> str:
    source = given.text("bearer.auth.credentials.source").upper()
    if source not in ("", "STATIC_TOKEN", "OAUTHBEARER"):
        raise InvalidSetting(
            f"Invalid value {source} for configuration bearer.auth.credentials.source: STATIC_TOKEN or OAUTHBEARER."
        )
    if source == "STATIC_TOKEN":
        return given.required("bearer.auth.token", source)
    return "" if source else given.text("bearer.auth.token")


def _issuer(given: _Properties) -> TokenIssuer | None:
    source = given.text("bearer.auth.credentials.source").upper()
    if source != "OAUTHBEARER":
        return None
    return TokenIssuer(
        given.required("bearer.auth.issuer.endpoint.url", source),
        given.required("bearer.auth.client.id", source),
        given.required("bearer.auth.client.secret", source),
        given.text("bearer.auth.scope"),
    )


def _headers(given: _Properties) -> tuple[tuple[str, str], ...]:
    named = (
        ("target-sr-cluster", given.text("bearer.auth.logical.cluster")),
        ("Confluent-Identity-Pool-Id", given.text("bearer.auth.identity.pool.id")),
    )
    return tuple((name, value) for name, value in named if value)


def _proxy(given: _Properties) -> str:
    host = given.text("proxy.host")
    return f"http://{host}:{given.number('proxy.port', 0, least=1)}" if host else ""
