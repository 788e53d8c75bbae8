"""What a partition knows of one producer id, like Kafka's ProducerStateEntry."""

from collections import deque
from typing import NamedTuple

BATCHES_TO_RETAIN = 5
LAST_SEQUENCE = 0x7FFF_FFFF
NO_SEQUENCE = -1
NO_EPOCH = -1
SINCE_THE_LAST_ROUND = -1
BEFORE_THE_START = -2


class BatchMetadata(NamedTuple):
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta

    @property
    def first_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) & LAST_SEQUENCE


class ProducerEntry:
    __slots__ = (
        "batches",
        "coordinator_epoch",
        "current_txn_first_offset",
        "generation",
        "last_timestamp",
        "producer_epoch",
        "producer_id",
        "seen_ms",
    )

    def __init__(self, producer_id: int, producer_epoch: int = NO_EPOCH, generation: int = 0) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.coordinator_epoch = -1
        self.last_timestamp = -1
        self.current_txn_first_offset = -1
        self.batches: deque[BatchMetadata] = deque(maxlen=BATCHES_TO_RETAIN)
        self.seen_ms = BEFORE_THE_START
        """When the producer last wrote, on the steady clock, rounded up to the next run of `expire`."""
        self.generation = generation
        """How many snapshots had been taken before it was created: an entry of an older generation may be in one."""

    def copied(self, generation: int) -> "ProducerEntry":
        copied = ProducerEntry(self.producer_id, self.producer_epoch, generation)
        copied.coordinator_epoch = self.coordinator_epoch
        copied.last_timestamp = self.last_timestamp
        copied.current_txn_first_offset = self.current_txn_first_offset
        copied.batches.extend(self.batches)
        copied.seen_ms = self.seen_ms
        return copied

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else -1

    def repeated(self, base_sequence: int, offset_delta: int) -> BatchMetadata | None:
        """The batch of this epoch that has these sequences, if it is among the last five."""
        last_sequence = (base_sequence + offset_delta) & LAST_SEQUENCE
        for batch in self.batches:
            if batch.last_sequence == last_sequence and batch.first_sequence == base_sequence:
                return batch
        return None

    def is_followed_by(self, base_sequence: int) -> bool:
        last = self.last_sequence
        return base_sequence == last + 1 or (base_sequence == 0 and last == LAST_SEQUENCE)
