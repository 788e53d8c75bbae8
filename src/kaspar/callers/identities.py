"""The identities that a service's Kafka clients log in with: the service's own, or that of the caller of a request."""

import base64
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from kaspar.base.errors import InvalidSetting, KasparError
from kaspar.security.sasl import OAUTHBEARER, PLAIN
from kaspar.web.identity import Caller, Scheme

_PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
_OAUTH_MODULE: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
_MECHANISMS: Final = {
    PLAIN: _PLAIN_MODULE,
    "SCRAM-SHA-256": _SCRAM_MODULE,
    "SCRAM-SHA-512": _SCRAM_MODULE,
}
_UNKNOWN_LIFETIME_S: Final = 3600.0

Token = tuple[str, float, str, dict[str, str]]
"""What librdkafka's `oauth_cb` returns: the token, its expiry time, the principal's name, and the SASL extensions."""


@dataclass(frozen=True, slots=True)
class Identity:
    """An identity to log in with; pooled clients are keyed by it. The service's own identity has no scheme."""

    name: str | None = None
    scheme: Scheme | None = None
    credentials: str = field(default="", repr=False)

    def properties(self, base: Mapping[str, str]) -> Mapping[str, str]:
        """The properties of a client that logs in with this identity. `base` are the properties of the service."""
        if self.scheme is None:
            return base
        if self.scheme is Scheme.BEARER:
            # Clients take the token from `token` and `token_source`, but the login module requires a name.
            jaas = f'{_OAUTH_MODULE} required unsecuredLoginStringClaim_sub="{_quoted(self.name or "caller")}";'
            return {**base, "sasl.mechanism": OAUTHBEARER, "sasl.jaas.config": jaas}
        mechanism = mechanism_of_basic(base)
        options = f'username="{_quoted(self.name or "")}" password="{_quoted(self.credentials)}"'
        jaas = f"{_MECHANISMS[mechanism]} required {options};"
        return {**base, "sasl.mechanism": mechanism, "sasl.jaas.config": jaas}

    @property
    def token(self) -> str | None:
        return self.credentials if self.scheme is Scheme.BEARER else None

    def token_source(self) -> Callable[[str], Token]:
        """librdkafka's `oauth_cb`."""
        expires_s = _expiry(self.credentials)

        def source(config: str) -> Token:
            del config
            return self.credentials, expires_s or time.time() + _UNKNOWN_LIFETIME_S, self.name or "", {}

        return source


SERVICE: Final = Identity()
EXAMPLE: Final = Identity("caller", Scheme.BASIC, "secret")
"""Used to check properties before the first caller arrives."""


class NoCredentials(KasparError):
    """The caller authenticated in a way that cannot be propagated to a broker."""


def identity_of(caller: Caller, *, propagate: bool) -> Identity:
    """The identity that brokers see for this caller. Raises NoCredentials."""
    if not propagate:
        return SERVICE
    if caller.scheme in (Scheme.BASIC, Scheme.BEARER) and caller.credentials is not None:
        return Identity(caller.name, caller.scheme, caller.credentials)
    raise NoCredentials("The request has no credentials that can be passed to a broker.")


def check_propagation(properties: Mapping[str, str]) -> None:
    """Check that callers can log in with these properties of the service. Raises InvalidSetting."""
    if not properties.get("security.protocol", "").strip().upper().startswith("SASL_"):
        raise InvalidSetting("kaspar.propagate.identity=true needs client.security.protocol=SASL_SSL or SASL_PLAINTEXT")
    mechanism_of_basic(properties)


def mechanism_of_basic(properties: Mapping[str, str]) -> str:
    """The SASL mechanism for callers that authenticate with a name and a password."""
    mechanism = properties.get("sasl.mechanism", PLAIN).strip()
    if mechanism == OAUTHBEARER:
        return PLAIN
    if mechanism not in _MECHANISMS:
        raise InvalidSetting(
            f"Invalid value {mechanism} for configuration client.sasl.mechanism: "
            f"to propagate identities, one of {', '.join(_MECHANISMS)}, {OAUTHBEARER} is needed"
        )
    return mechanism


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return escaped.replace("\n", "\\n").replace("\r", "\\r")


def _expiry(token: str) -> float | None:
    """The expiry time of a JWT, unverified; None for any other kind of token. Brokers verify the token."""
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return float(claims["exp"])
    except (IndexError, KeyError, TypeError, ValueError):
        return None
