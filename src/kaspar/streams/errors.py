"""The kinds of error of a streams program."""

from typing import Final

from kaspar.base.errors import KasparError
from kaspar.serialization.errors import RegistryUnavailable


class StreamsError(KasparError):
    """What a streams program cannot do, with the reason."""


class TopologyError(StreamsError):
    """A topology that cannot be, refused when it is built."""


class ProcessingError(StreamsError):
    """A function of the program raised an exception for a record, and the program's settings say that it stops then."""


class RecordTooLarge(StreamsError):
    """A record that the producer would refuse."""


def described(problem: Exception) -> str:
    """What a function of the program raised."""
    return f"{type(problem).__name__}: {problem}" if str(problem) else type(problem).__name__


NEVER_SKIPPED: Final = (ProcessingError, RegistryUnavailable)
"""What stops a program whatever its exception handlers are: a registry that is away says nothing about a record."""
