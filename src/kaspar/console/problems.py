"""Why a call of the page is not done, beside what brokers refuse. The text is a sentence for the person at the page."""

from collections.abc import Collection

from kaspar.base.errors import KasparError, Refused


class Unacceptable(KasparError):
    """The call itself is wrong."""


class NotThere(KasparError):
    """What the call is about does not exist, or no longer."""


class Conflict(KasparError):
    """The change does not fit the present state: somebody else was faster, or something else has to happen first."""


class Unfinished(Conflict):
    """The change was begun, and what has become of it is not known."""


class PartlyRefused(Refused):
    """A part of the change was refused, and others were made."""


def check_parts(results: Collection[object]) -> None:
    """Raises the first refusal among the results of a change's parts: PartlyRefused, if not all were refused."""
    refusals = [each for each in results if isinstance(each, Refused)]
    if refusals:
        first = refusals[0]
        raise first if len(refusals) == len(results) else PartlyRefused(first.code, first.message)
