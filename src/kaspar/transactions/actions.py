"""What the shell has to do when a decision is committed."""

from dataclasses import dataclass

from kaspar.base.ids import ProducerIdAndEpoch, TopicPartition


@dataclass(frozen=True, slots=True)
class WriteMarkers:
    """Write a marker to each of the partitions, and tell the shard when all of them have it (`markers_written`)."""

    transactional_id: str
    producer: ProducerIdAndEpoch
    coordinator_epoch: int
    partitions: frozenset[TopicPartition]
    committed: bool
    transaction_version: int


@dataclass(frozen=True, slots=True)
class TransactionCompleted:
    """The next transaction of this id may begin: whoever waits for that can go on."""

    transactional_id: str
