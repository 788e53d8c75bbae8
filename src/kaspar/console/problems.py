"""Why a request of the page fails, apart from what brokers reject. The text is a sentence for the user."""

from kaspar.base.errors import KasparError


class Unacceptable(KasparError):
    """The call itself is wrong."""


class NotThere(KasparError):
    """What the call is about does not exist, or no longer."""


class Conflict(KasparError):
    """The change conflicts with the current state: someone else was faster, or something else must happen first."""
