"""What goes into an append, and what comes out of an append or a read."""

from enum import Enum
from typing import Final, Literal, NamedTuple, TypeAlias

from kaspar.base.errors import KasparError


class PreparedBatch(NamedTuple):
    """One batch that has passed every check that needs no log: ready to be given its offsets and written.

    `buffer[start:end]` is the batch; the log patches offset and leader epoch in place. The rest is its header's.
    """

    buffer: bytearray | memoryview
    start: int
    end: int
    last_offset_delta: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    is_transactional: bool
    log_append_time_ms: int


class Appended(NamedTuple):
    base_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    duplicate: bool


class UnexpectedAppendOffset(KasparError):
    """A follower was given records that do not go on where its log ends."""


class _ReadOutcome(Enum):
    WOULD_BLOCK = "WOULD_BLOCK"


WouldBlock: TypeAlias = Literal[_ReadOutcome.WOULD_BLOCK]
WOULD_BLOCK: Final = _ReadOutcome.WOULD_BLOCK
