"""The markers that a transaction's coordinator writes to its partitions: one that ends the transaction, or a fence,
when it is prepared.
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
    """Ends nothing, but raises the producer's epoch (broker/coordination/fences.py)."""


class Marker(NamedTuple):
    kind: MarkerKind
    producer: ProducerIdAndEpoch
    coordinator_epoch: int
    transaction_version: int


class GiveMarker(Protocol):
    """Writes a marker to a partition. Returns NONE when it is committed."""

    def __call__(self, partition: TopicPartition, marker: Marker) -> Awaitable[ErrorCode]: ...
