"""The keys that sign tokens, from `sasl.oauthbearer.jwks.endpoint.url`. A file is read again when it changes. A URL is
fetched in a thread every `sasl.oauthbearer.jwks.endpoint.refresh.ms`, and shortly after a token with an unknown key.
"""

import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from kaspar.base.errors import InvalidSetting
from kaspar.base.log import get_log
from kaspar.config import BrokerConfig
from kaspar.config.kinds import LIST
from kaspar.security.jwt import (
    InvalidToken,
    Jwk,
    TokenRules,
    UnknownKey,
    ValidToken,
    read_keys,
    read_unsecured,
    validate,
)

log = get_log(__name__)

FETCH_WITHIN_S: Final = 10.0
FETCH_AT_MOST_EVERY_S: Final = 5.0
MAX_BYTES: Final = 1024 * 1024
UNSECURED_HANDLER: Final = (
    "org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
)


class TokenValidator:
    """Validates the tokens of one listener."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        """Raises InvalidSetting."""
        self._rules = _rules(settings)
        url = settings.get("sasl.oauthbearer.jwks.endpoint.url")
        handler = settings.get("sasl.server.callback.handler.class", "").strip()
        self._keys: KeySource | None = None
        if url:
            refresh = _parsed(settings, "sasl.oauthbearer.jwks.endpoint.refresh.ms")
            self._keys = KeySource(url.strip(), refresh_s=refresh / 1000)
        elif handler != UNSECURED_HANDLER:
            raise InvalidSetting(
                "OAUTHBEARER needs the keys that sign tokens: set sasl.oauthbearer.jwks.endpoint.url. Tokens without a "
                f"signature are accepted with sasl.server.callback.handler.class={UNSECURED_HANDLER}"
            )

    def __call__(self, token: str) -> ValidToken:
        now_ms = time.time_ns() // 1_000_000
        if self._keys is None:
            return read_unsecured(token, self._rules, now_ms)
        try:
            return validate(token, self._keys.current(), self._rules, now_ms)
        except UnknownKey:
            self._keys.look_again()
            raise
        except InvalidToken as problem:
            log.debug("a token was rejected", reason=str(problem))
            raise


class KeySource:
    def __init__(self, url: str, *, refresh_s: float) -> None:
        """Raises InvalidSetting if the keys cannot be loaded now."""
        parts = urlsplit(url)
        self._file = Path(unquote(parts.path)) if parts.scheme == "file" else None
        if self._file is None and parts.scheme not in ("http", "https"):
            raise InvalidSetting("sasl.oauthbearer.jwks.endpoint.url must be of the form file:, http: or https:")
        self._url = url
        self._refresh_s = refresh_s
        self._changed_ns = 0
        self._fetching: threading.Thread | None = None
        try:
            self._keys = self._read()
        except (OSError, InvalidToken) as problem:
            raise InvalidSetting(f"sasl.oauthbearer.jwks.endpoint.url {url} cannot be used: {problem}") from None
        self._read_at = time.monotonic()

    def current(self) -> Sequence[Jwk]:
        if self._file is not None:
            self._read_changed_file(self._file)
        elif time.monotonic() - self._read_at >= self._refresh_s:
            self.look_again()
        return self._keys

    def look_again(self) -> None:
        """Fetch the keys in a thread, unless that was done just before."""
        if self._file is not None or (self._fetching is not None and self._fetching.is_alive()):
            return
        if time.monotonic() - self._read_at < FETCH_AT_MOST_EVERY_S:
            return
        self._read_at = time.monotonic()
        self._fetching = threading.Thread(target=self._fetch, name="keys of tokens", daemon=True)
        self._fetching.start()

    def _fetch(self) -> None:
        try:
            self._keys = self._read()
        except (OSError, InvalidToken) as problem:
            log.warning("the keys that sign tokens cannot be fetched", url=self._url, problem=str(problem))

    def _read_changed_file(self, file: Path) -> None:
        try:
            if file.stat().st_mtime_ns != self._changed_ns:
                self._keys = self._read()
        except (OSError, InvalidToken) as problem:
            log.warning("the keys that sign tokens cannot be read", file=str(file), problem=str(problem))

    def _read(self) -> Sequence[Jwk]:
        if self._file is not None:
            self._changed_ns = self._file.stat().st_mtime_ns
            return read_keys(self._file.read_bytes())
        with urllib.request.urlopen(self._url, timeout=FETCH_WITHIN_S) as response:
            return read_keys(response.read(MAX_BYTES))


def _rules(settings: Mapping[str, str]) -> TokenRules:
    return TokenRules(
        scope_claim=_parsed(settings, "sasl.oauthbearer.scope.claim.name"),
        subject_claim=_parsed(settings, "sasl.oauthbearer.sub.claim.name"),
        audiences=LIST.parse(settings.get("sasl.oauthbearer.expected.audience", "")),
        issuer=settings.get("sasl.oauthbearer.expected.issuer") or None,
        clock_skew_s=_parsed(settings, "sasl.oauthbearer.clock.skew.seconds"),
    )


def _parsed(settings: Mapping[str, str], name: str) -> Any:
    declaration = BrokerConfig.declared[name]
    return declaration.parse(settings[name]) if name in settings else declaration.default
