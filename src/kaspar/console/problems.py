"""Errors of the page's requests, apart from what brokers reject. The text is a sentence for the user."""

from collections.abc import Collection

from kaspar.base.errors import KasparError, Refused


class Unacceptable(KasparError):
    """The request itself is invalid."""


class NotThere(KasparError):
    """The requested object does not exist, or no longer."""


class Conflict(KasparError):
    """The change conflicts with the current state: someone else was faster, or something else must happen first."""


class Unfinished(Conflict):
    """The change was started, and its outcome is unknown."""


class PartlyRefused(Refused):
    """Some parts of the change were rejected, and others were made."""


def check_parts(results: Collection[object]) -> None:
    """Raises the first refusal among the results of a change's parts, as PartlyRefused unless all were refused."""
    refusals = [each for each in results if isinstance(each, Refused)]
    if refusals:
        first = refusals[0]
        raise first if len(refusals) == len(results) else PartlyRefused(first.code, first.message)
