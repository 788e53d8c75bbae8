"""What the shell has to do when a decision is committed."""

from dataclasses import dataclass

from kaspar.base.ids import ProducerIdAndEpoch, TopicPartition


@dataclass(frozen=True, slots=True)
class WriteMarkers:
    """Write a marker to each of the partitions, and report when all of them have it (`markers_written`)."""

    transactional_id: str
    producer: ProducerIdAndEpoch
    coordinator_epoch: int
    partitions: frozenset[TopicPartition]
    committed: bool
    transaction_version: int


@dataclass(frozen=True, slots=True)
class WriteFences:
    """Write the fence of a prepared transaction to each of its partitions. That it is prepared is reported only after
    all of them have it.
    """

    transactional_id: str
    producer: ProducerIdAndEpoch
    coordinator_epoch: int
    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class TransactionCompleted:
    """The next transaction of this id may begin."""

    transactional_id: str
