"""Requests to a registry over HTTP: several URLs, any of which may be down; bounded retries; credentials."""

import random
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Protocol

from kaspar.base.errors import KasparError
from kaspar.serialization.errors import RegistryError, RegistryUnavailable, reason_of
from kaspar.serialization.registry_config import RegistryConfig, TokenIssuer

if TYPE_CHECKING:
    import httpx

_CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"
_ACCEPT: Final = f"{_CONTENT_TYPE}, application/vnd.schemaregistry+json; q=0.9, application/json; q=0.5"
_RETRIABLE: Final = frozenset((408, 429, 500, 502, 503, 504))
_TOKEN_MARGIN: Final = 0.8
"""The part of a token's lifetime after which a new one is fetched."""
_DEFAULT_TOKEN_S: Final = 300
_HOW_TO_LOG_IN: Final = " (basic.auth.credentials.source=USER_INFO with basic.auth.user.info=USER:PASSWORD)"


class Requests(Protocol):
    """Sends requests to a registry."""

    def request(self, method: str, path: str, parameters: Mapping[str, str], body: Any = None) -> Any:
        """Send a request and return the JSON of the response. Raises RegistryError."""

    def close(self) -> None: ...


class HttpRequests:
    """May be used by several threads."""

    def __init__(self, config: RegistryConfig, *, sleep: Callable[[float], None] = time.sleep) -> None:
        """Raises InvalidSetting, and KasparError if httpx is not installed."""
        try:
            import httpx  # slow to import, and not every program needs it
        except ModuleNotFoundError:
            raise KasparError("a schema registry is reached with httpx: pip install 'kaspar[registry]'") from None

        self._config = config
        self._sleep = sleep
        self._preferred = 0
        timeout = httpx.Timeout(config.read_timeout_s, connect=config.connect_timeout_s)
        self._http = httpx.Client(
            verify=_tls(config),
            timeout=timeout,
            proxy=config.proxy or None,
            trust_env=False,
            headers={"Accept": _ACCEPT, "Content-Type": _CONTENT_TYPE, **dict(config.headers)},
        )
        # Not every user of a client closes it: a console command ends, a serde is garbage collected.
        self._close = weakref.finalize(self, self._http.close)
        self._tokens = None if config.issuer is None else _Tokens(config.issuer, self._http)

    def request(self, method: str, path: str, parameters: Mapping[str, str], body: Any = None) -> Any:
        for attempt in range(self._config.max_retries + 1):
            if attempt:
                most = min(self._config.retry_wait_s * 2 ** (attempt - 1), self._config.retry_max_wait_s)
                self._sleep(random.uniform(most / 2, most))
            try:
                return self._at_any_url(method, path, parameters, body)
            except RegistryError as error:
                if error.status not in _RETRIABLE:
                    raise
                failure = error
        raise failure

    def close(self) -> None:
        self._close()

    def _at_any_url(self, method: str, path: str, parameters: Mapping[str, str], body: Any) -> Any:
        """Try each URL once, beginning with the one that responded last."""
        urls = self._config.urls
        first = self._preferred
        for offset in range(len(urls)):
            index = (first + offset) % len(urls)
            try:
                found = self._at(index, method, path, parameters, body)
            except RegistryError as error:
                if error.status not in _RETRIABLE:
                    self._preferred = index
                    raise
                failure = error
            else:
                self._preferred = index
                return found
        raise failure

    def _at(self, index: int, method: str, path: str, parameters: Mapping[str, str], body: Any) -> Any:
        import httpx

        url = self._config.urls[index]
        headers = {}
        if self._tokens is not None:
            headers["Authorization"] = f"Bearer {self._tokens.current()}"
        elif self._config.token:
            headers["Authorization"] = f"Bearer {self._config.token}"
        credentials = self._config.credentials[index] if self._config.credentials else None
        # A token takes precedence: httpx would replace the header by the credentials.
        auth = None if headers or credentials is None else httpx.BasicAuth(*credentials)
        try:
            response = self._http.request(
                method, f"{url}{path}", params=dict(parameters), json=body, headers=headers, auth=auth
            )
        except httpx.TimeoutException as error:
            raise RegistryUnavailable(f"The schema registry at {url} did not respond in time.", status=504) from error
        except httpx.HTTPError as error:
            raise RegistryUnavailable(
                f"The schema registry at {url} (schema.registry.url) cannot be reached: {reason_of(error)}."
            ) from error
        return _json_of(response, url)


class _Tokens:
    """The current token of an issuer, which is renewed before it expires."""

    def __init__(self, issuer: TokenIssuer, http: "httpx.Client") -> None:
        self._issuer = issuer
        self._http = http
        self._lock = threading.Lock()
        self._token = ""
        self._renew_at = 0.0

    def current(self) -> str:
        with self._lock:
            if time.monotonic() >= self._renew_at:
                self._token, lifetime_s = self._fetch()
                self._renew_at = time.monotonic() + lifetime_s * _TOKEN_MARGIN
            return self._token

    def _fetch(self) -> tuple[str, float]:
        import httpx

        issuer = self._issuer
        form = {"grant_type": "client_credentials", "scope": issuer.scope}
        try:
            response = self._http.post(
                issuer.url,
                data={name: value for name, value in form.items() if value},
                auth=httpx.BasicAuth(issuer.client_id, issuer.client_secret),
                headers={"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"},
            )
            response.raise_for_status()
            found = response.json()
            return str(found["access_token"]), float(found.get("expires_in", _DEFAULT_TOKEN_S))
        except (httpx.HTTPError, ValueError, TypeError, KeyError) as error:
            raise RegistryUnavailable(f"No token came from {issuer.url}: {reason_of(error)}.", status=401) from error


def _tls(config: RegistryConfig) -> Any:
    """The TLS context for https, or False if no URL needs it, because creating one is slow."""
    urls = (*config.urls, *(() if config.issuer is None else (config.issuer.url,)))
    if not any(url.startswith("https:") for url in urls):
        return False
    from kaspar.security.tls import client_context

    return client_context(dict(config.tls))


def _json_of(response: "httpx.Response", url: str) -> Any:
    try:
        found = response.json()
    except ValueError:
        found = None
    if response.is_success and found is not None:
        return found
    if isinstance(found, dict) and isinstance(found.get("error_code"), int):
        message = str(found.get("message") or f"The schema registry at {url} refused the request.")
        if response.status_code == HTTPStatus.UNAUTHORIZED:
            message = f"The schema registry at {url} did not accept the credentials{_HOW_TO_LOG_IN}: {message}"
        raise RegistryError(
            message,
            status=response.status_code,
            error_code=found["error_code"],
        )
    if response.is_success:
        raise RegistryError(f"{url} sent no JSON: it is no schema registry.", status=502, error_code=50201)
    raise RegistryError(
        f"The schema registry at {url} responded with HTTP status {response.status_code} {response.reason_phrase}.",
        status=response.status_code,
        error_code=response.status_code,
    )
