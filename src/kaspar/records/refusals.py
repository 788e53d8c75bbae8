"""Why records are refused, where the code alone does not say it, and when their check has come to no end."""

from kaspar.base.errors import ErrorCode, Refused


class NotOneBatch(Refused):
    """A partition was sent something other than one whole batch of the current format: no log need look at it."""

    def __init__(self, message: str, code: ErrorCode = ErrorCode.INVALID_RECORD) -> None:
        super().__init__(code, message)


class TakesTooLong(Exception):
    """Whoever asked for a check gave it less time than it takes. Nothing is known of the batch."""
