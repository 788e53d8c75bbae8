"""Why records are refused, where the code alone does not say it."""

from kaspar.base.errors import ErrorCode, Refused


class NotOneBatch(Refused):
    """A partition was sent something other than one whole batch of the current format: no log need look at it."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.INVALID_RECORD, message)
