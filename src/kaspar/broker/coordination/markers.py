"""What a transaction's coordinator writes to each of its partitions: a marker that ends the transaction there, or a
fence, when it is prepared.
"""

from collections.abc import Awaitable
from enum import Enum
from typing import NamedTuple, Protocol

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import ProducerIdAndEpoch, TopicPartition


class MarkerKind(Enum):
    COMMIT = "commit"
    ABORT = "abort"
    FENCE = "fence"
    """It ends nothing: it raises the producer's epoch (broker/coordination/fences.py)."""


class Marker(NamedTuple):
    kind: MarkerKind
    producer: ProducerIdAndEpoch
    coordinator_epoch: int
    transaction_version: int


class GiveMarker(Protocol):
    """Give a marker to a partition. NONE when it is committed."""

    def __call__(self, partition: TopicPartition, marker: Marker) -> Awaitable[ErrorCode]: ...
