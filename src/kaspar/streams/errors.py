"""The kinds of error of a streams program."""

from kaspar.base.errors import KasparError


class StreamsError(KasparError):
    """What a streams program cannot do, with the reason."""


class TopologyError(StreamsError):
    """A topology that cannot be, refused when it is built."""


class ProcessingError(StreamsError):
    """A function of the program raised an exception for a record, and the program's settings say that it stops then."""
