"""The kinds of error of a streams program."""

from typing import Final

from kaspar.base.errors import KasparError
from kaspar.serialization.errors import RegistryUnavailable


class StreamsError(KasparError):
    """An error of a streams program, with the reason."""


class TopologyError(StreamsError):
    """An invalid topology, rejected when it is built."""


class ProcessingError(StreamsError):
    """A function of the program raised an exception for a record, and the settings of the program make this fatal."""


class RecordTooLarge(StreamsError):
    """A record that is larger than the producer accepts."""


def described(problem: Exception) -> str:
    """The text of an exception that a function of the program raised."""
    return f"{type(problem).__name__}: {problem}" if str(problem) else type(problem).__name__


NEVER_SKIPPED: Final = (ProcessingError, RegistryUnavailable)
"""Errors that stop a program whatever its exception handlers are. An unavailable registry does not mean that the record
is bad."""
