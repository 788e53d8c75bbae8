"""The kinds of error, kept apart.

- `Refused`: a request that is understood and refused; carries one wire code and becomes a response in one place.
- `MalformedBytes`: bytes from a peer that are not what they claim to be; closes that peer's connection.
- `StorageFailure`: a log directory that can no longer be trusted; takes that directory offline.
- `InvalidSetting` and other `KasparError`s: a sentence for a person; the command ends with it.
- A broken invariant is an AssertionError and stops the broker.

Inside a broker an invariant is an `assert`: the broker refuses to start under `python -O`, which would remove them
(broker/server.py). Code that also runs in other people's processes (the wire client, Spark's tasks) cannot choose how
Python was started, and refusing there would fail what has nothing to do with us. So there `assert` only tells mypy a
type, and what must hold is checked with `invariant`. A test keeps both rules (tests/unit/base/test_assertions.py).
"""

from kaspar.base.error_codes import ErrorCode

__all__ = [
    "ErrorCode",
    "InvalidSetting",
    "KasparError",
    "MalformedBytes",
    "Refused",
    "StorageFailure",
    "TooManyElements",
    "invariant",
]


def invariant(holds: bool, sentence: str) -> None:
    """An assertion that no option of Python removes."""
    if not holds:
        raise AssertionError(sentence)


class KasparError(Exception):
    """The root of what Kaspar raises on purpose. Its text is a sentence for a person."""


class Refused(KasparError):
    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class MalformedBytes(KasparError):
    pass


class TooManyElements(MalformedBytes):
    """The arrays of a message have more elements than its reader allowed."""


class StorageFailure(KasparError):
    def __init__(self, directory: str, message: str) -> None:
        super().__init__(message)
        self.directory = directory


class InvalidSetting(KasparError):
    pass
