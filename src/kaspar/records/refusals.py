"""Refusals of records that need more than an error code, and checks that did not finish."""

from kaspar.base.errors import ErrorCode, Refused


class NotOneBatch(Refused):
    """The bytes that were sent for a partition are not one whole batch of the current format."""

    def __init__(self, message: str, code: ErrorCode = ErrorCode.INVALID_RECORD) -> None:
        super().__init__(code, message)


class TakesTooLong(Exception):
    """The check was abandoned because it takes longer than the caller allows. Nothing is known about the batch."""
