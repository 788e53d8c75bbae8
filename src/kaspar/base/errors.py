"""The kinds of error.

- `Refused`: a valid request that is refused; has one wire code, and becomes a response in one place.
- `MalformedBytes`: bytes from a peer that cannot be parsed; closes that peer's connection.
- `StorageFailure`: a log directory that can no longer be trusted; takes that directory offline.
- `InvalidSetting` and other `KasparError`s: a sentence for a person; the command ends with it.
- A broken invariant is an AssertionError and stops the broker.

Inside a broker an invariant is an `assert`: the broker refuses to start under `python -O`, which would remove them
(broker/server.py). Code that also runs in users' processes (the wire client, Spark's tasks) cannot control how Python
was started. So there `assert` only narrows a type for mypy, and invariants are checked with `invariant`. A test checks
both rules (tests/unit/base/test_assertions.py).
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
    """Check an assertion that no option of Python removes."""
    if not holds:
        raise AssertionError(sentence)


class KasparError(Exception):
    """The base class of Kaspar's errors. Its text is a sentence for people."""


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
