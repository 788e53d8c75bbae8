"""What SASL mechanisms are to those that run an exchange, on both sides, and how an exchange fails.

Two kinds of failure, as in Kafka: `AuthenticationRefused` has a message for the client, `InvalidCredentials` has none,
because its reason could tell an attacker which users exist.
"""

from typing import Final, Protocol

from kaspar.base.errors import KasparError

PLAIN: Final = "PLAIN"
OAUTHBEARER: Final = "OAUTHBEARER"
GSSAPI: Final = "GSSAPI"


class InvalidCredentials(KasparError):
    """Its text is for the log of this side."""


class AuthenticationRefused(KasparError):
    """Its text is for the other side."""


class SaslServer(Protocol):
    """The broker's side of one exchange."""

    is_complete: bool
    authorization_id: str
    """Who has authenticated, once the exchange is complete."""
    is_token: bool
    """Whether a delegation token was used."""
    expires_ms: int | None
    """When the credential expires, in milliseconds since the epoch; None if it does not."""
    blocks: bool
    """Whether `evaluate` may wait for files or other machines: then it is called in a thread."""

    def evaluate(self, token: bytes) -> bytes | None:
        """The response to a message of the client; None if the last message has none. Raises InvalidCredentials or
        AuthenticationRefused.
        """
        ...


class SaslClient(Protocol):
    """The client's side of one exchange."""

    is_complete: bool

    def first(self) -> bytes:
        """Raises InvalidCredentials."""
        ...

    def evaluate(self, challenge: bytes) -> bytes | None:
        """The next message; None when there is nothing more to say. Raises InvalidCredentials."""
        ...
