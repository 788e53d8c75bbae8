"""Why a call of the page is not done, beside what brokers refuse. The text is a sentence for the person at the page."""

from kaspar.base.errors import KasparError


class Unacceptable(KasparError):
    """The call itself is wrong."""


class NotThere(KasparError):
    """What the call is about does not exist, or no longer."""


class Conflict(KasparError):
    """The change does not fit the present state: somebody else was faster, or something else has to happen first."""


class Unfinished(Conflict):
    """The change was begun, and what has become of it is not known."""
