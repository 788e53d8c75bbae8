"""Records that are passed to a producer, and the outcome of each."""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from kaspar.rest.errors import KAFKA_RETRIABLE, UNKNOWN_TOPIC_OR_PARTITION, ErrorKind


class OutgoingRecord(NamedTuple):
    key: bytes | None = None
    value: bytes | None = None
    partition: int = -1
    """-1: the partitioner chooses."""
    timestamp_ms: int = 0
    """0: the current time."""
    headers: Sequence[tuple[str, bytes | None]] | None = None


class Delivered(NamedTuple):
    partition: int
    offset: int
    timestamp_ms: int | None


class Undelivered(NamedTuple):
    kind: ErrorKind
    message: str

    @property
    def is_retriable(self) -> bool:
        """Whether the same record may be accepted later."""
        return self.kind in (KAFKA_RETRIABLE, UNKNOWN_TOPIC_OR_PARTITION)


Outcome: TypeAlias = Delivered | Undelivered
