"""The values passed to an append, and the values that appends and reads return."""

from enum import Enum
from typing import Final, Literal, NamedTuple, TypeAlias

from kaspar.base.errors import KasparError
from kaspar.records import PreparedBatch as PreparedBatch


class Appended(NamedTuple):
    base_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    duplicate: bool


class UnexpectedAppendOffset(KasparError):
    """A follower fetched records that do not continue its log. The log may end within the first batch."""

    def __init__(self, message: str, first_offset: int, *, continues_after: bool) -> None:
        super().__init__(message)
        self.first_offset = first_offset
        self.continues_after = continues_after


class _ReadOutcome(Enum):
    WOULD_BLOCK = "WOULD_BLOCK"


WouldBlock: TypeAlias = Literal[_ReadOutcome.WOULD_BLOCK]
WOULD_BLOCK: Final = _ReadOutcome.WOULD_BLOCK
