"""The interface of SASL mechanisms on both sides, and how an exchange fails.

There are two kinds of failure, as in Kafka: `AuthenticationRefused` has a message for the client, `InvalidCredentials`
has none, because its reason could reveal to an attacker which users exist.
"""

from typing import Final, Protocol

from kaspar.base.errors import KasparError

PLAIN: Final = "PLAIN"
OAUTHBEARER: Final = "OAUTHBEARER"
GSSAPI: Final = "GSSAPI"


class InvalidCredentials(KasparError):
    """The text is for the log of this side."""


class AuthenticationRefused(KasparError):
    """The text is for the other side."""


class SaslServer(Protocol):
    """The broker's side of one exchange."""

    is_complete: bool
    authorization_id: str
    """The authenticated name, once the exchange is complete."""
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
        """The first message. Raises InvalidCredentials."""
        ...

    def evaluate(self, challenge: bytes) -> bytes | None:
        """The next message; None if there is none. Raises InvalidCredentials."""
        ...
