"""What a partition knows of each producer id: its epoch, its last five batches, its open transaction.

A batch of an idempotent producer is checked against it before it is written (`check`) and remembered after it was
written (`remember`). Replicated and replayed batches are remembered without being questioned. The rules are Kafka 4's:

- a batch with the sequences of one of the last five is a duplicate and is answered with that one's offsets;
- within an epoch the first sequence must follow the last one (after 2^31-1 comes 0);
- a new epoch begins with sequence 0; an older epoch is INVALID_PRODUCER_EPOCH;
- a producer id that is not known (new, expired, or its records are deleted) may begin with any sequence.

Open transactions hold back the last stable offset, and decided ones do until the high watermark has passed their
marker. Changed by the log's owner alone.
"""

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import TopicPartition

BATCHES_TO_RETAIN = 5
LAST_SEQUENCE = 0x7FFF_FFFF
NO_SEQUENCE = -1


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
        "last_timestamp",
        "producer_epoch",
        "producer_id",
    )

    def __init__(self, producer_id: int, producer_epoch: int = -1) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.coordinator_epoch = -1
        self.last_timestamp = -1
        self.current_txn_first_offset = -1
        self.batches: deque[BatchMetadata] = deque(maxlen=BATCHES_TO_RETAIN)

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else -1


class CompletedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    aborted: bool


class ProducerState:
    __slots__ = ("_decided", "_ongoing", "entries", "first_unstable_offset", "topic_partition")

    def __init__(self, topic_partition: TopicPartition) -> None:
        self.topic_partition = topic_partition
        self.entries: dict[int, ProducerEntry] = {}
        self._ongoing: dict[int, int] = {}  # first offset of a transaction -> producer id
        self._decided: dict[int, int] = {}  # first offset -> offset of a marker that the high watermark has not passed
        self.first_unstable_offset: int | None = None

    def check(
        self, producer_id: int, epoch: int, base_sequence: int, offset_delta: int, transactional: bool, offset: int
    ) -> BatchMetadata | None:
        """None if the batch may be written at `offset`, or the batch that it repeats. Refused if neither."""
        entry = self.entries.get(producer_id)
        if entry is None:
            return None
        if epoch == entry.producer_epoch:
            batches = entry.batches
            if batches:
                last = batches[-1].last_sequence
                if base_sequence != last + 1 and not (base_sequence == 0 and last == LAST_SEQUENCE):
                    last_sequence = (base_sequence + offset_delta) & LAST_SEQUENCE
                    for batch in batches:
                        if batch.last_sequence == last_sequence and batch.first_sequence == base_sequence:
                            return batch
                    raise self._out_of_order(producer_id, offset, base_sequence, f"{last} (current end seq. number)")
            elif base_sequence != 0:
                # Only a marker of this epoch was seen: the first batch after it begins anew.
                raise self._out_of_order(producer_id, offset, base_sequence, "-1 (current end seq. number)")
        elif epoch < entry.producer_epoch:
            raise Refused(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Epoch of producer {producer_id} at offset {offset} in {self.topic_partition} is {epoch}, which is "
                f"smaller than the last seen epoch {entry.producer_epoch}",
            )
        elif base_sequence != 0 and entry.producer_epoch != -1:
            raise self._out_of_order(
                producer_id,
                offset,
                base_sequence,
                f"0 (expected, for epoch {epoch} is new after {entry.producer_epoch})",
            )
        if entry.current_txn_first_offset >= 0 and not transactional:
            raise Refused(
                ErrorCode.INVALID_TXN_STATE,
                f"Expected transactional write from producer {producer_id} at offset {offset} in partition "
                f"{self.topic_partition}",
            )
        return None

    def remember(
        self,
        producer_id: int,
        epoch: int,
        base_sequence: int,
        offset_delta: int,
        last_offset: int,
        timestamp: int,
        transactional: bool,
    ) -> None:
        """A data batch is in the log."""
        entry = self.entries.get(producer_id)
        if entry is None:
            entry = self.entries[producer_id] = ProducerEntry(producer_id, epoch)
        elif epoch != entry.producer_epoch:
            entry.producer_epoch = epoch
            entry.batches.clear()
        last_sequence = NO_SEQUENCE if base_sequence < 0 else (base_sequence + offset_delta) & LAST_SEQUENCE
        entry.batches.append(BatchMetadata(last_sequence, last_offset, offset_delta, timestamp))
        entry.last_timestamp = timestamp
        if transactional and entry.current_txn_first_offset < 0:
            first_offset = last_offset - offset_delta
            entry.current_txn_first_offset = first_offset
            self._ongoing[first_offset] = producer_id
            self._find_first_unstable_offset()

    def remember_marker(
        self, producer_id: int, epoch: int, coordinator_epoch: int, offset: int, timestamp: int, *, aborted: bool
    ) -> CompletedTransaction | None:
        """A transaction marker is in the log. What it decided; None if there was no transaction here."""
        entry = self.entries.get(producer_id)
        if entry is None:
            entry = self.entries[producer_id] = ProducerEntry(producer_id, epoch)
        elif epoch != entry.producer_epoch:
            entry.producer_epoch = epoch
            entry.batches.clear()
        entry.coordinator_epoch = coordinator_epoch
        entry.last_timestamp = timestamp
        first_offset = entry.current_txn_first_offset
        if first_offset < 0:
            return None
        entry.current_txn_first_offset = -1
        self._ongoing.pop(first_offset, None)
        self._decided[first_offset] = offset
        self._find_first_unstable_offset()
        return CompletedTransaction(producer_id, first_offset, offset, aborted)

    def restore(self, entries: Iterable[ProducerEntry]) -> None:
        """Begin with what a snapshot held."""
        self.clear()
        for entry in entries:
            self.entries[entry.producer_id] = entry
            if entry.current_txn_first_offset >= 0:
                self._ongoing[entry.current_txn_first_offset] = entry.producer_id
        self._find_first_unstable_offset()

    def clear(self) -> None:
        self.entries = {}
        self._ongoing = {}
        self._decided = {}
        self.first_unstable_offset = None

    def last_stable_offset(self, high_watermark: int) -> int:
        """The offset up to which every transaction is decided: what a read_committed reader may see."""
        first = self.first_unstable_offset
        return high_watermark if first is None or first > high_watermark else first

    def high_watermark_moved(self, high_watermark: int) -> None:
        """Decided transactions whose marker is now replicated hold nothing back any more."""
        if self._decided:
            self._decided = {first: last for first, last in self._decided.items() if last >= high_watermark}
            self._find_first_unstable_offset()

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers that were idle for too long; one with an open transaction stays. How many went."""
        expired = [
            producer_id
            for producer_id, entry in self.entries.items()
            if entry.current_txn_first_offset < 0 and now_ms - entry.last_timestamp >= expiration_ms
        ]
        for producer_id in expired:
            del self.entries[producer_id]
        return len(expired)

    def _find_first_unstable_offset(self) -> None:
        self.first_unstable_offset = min((*self._ongoing, *self._decided), default=None)

    def _out_of_order(self, producer_id: int, offset: int, sequence: int, expected: str) -> Refused:
        return Refused(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"Out of order sequence number for producer {producer_id} at offset {offset} in partition "
            f"{self.topic_partition}: {sequence} (incoming seq. number), {expected}",
        )
