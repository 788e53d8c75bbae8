"""What a partition knows of each producer id: its epoch, its last five batches, its open transaction.

A batch of an idempotent producer is checked against this state before it is written (`check`), and applied to it
afterwards (`remember`); so is a transaction's marker. Replicated and replayed batches are applied without a check. The
rules are those of Kafka 4 (ProducerAppendInfo):

- a batch with the same sequences as one of the last five is a duplicate, and its response has that one's offsets;
- within an epoch the first sequence must follow the last one (after 2^31-1 comes 0);
- a new epoch begins with sequence 0; an older epoch is INVALID_PRODUCER_EPOCH;
- an unknown producer id (new, expired, or its records are deleted) may begin with any sequence;
- a batch that follows one refused just now gets the same error as that one (storage/producers/refusals.py);
- a transactional batch belongs to a transaction that is open here, or that its coordinator has confirmed since the last
  marker (storage/producers/verification.py).

Open transactions hold back the last stable offset; so do decided ones until the high watermark has passed their marker.
Only the log's owner changes the state. An entry that is part of a snapshot is never changed again: the next batch of
its producer creates another one.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import TopicPartition
from kaspar.base.patient_clock import Moment
from kaspar.storage.producers.entry import (
    BEFORE_THE_START,
    LAST_SEQUENCE,
    NO_EPOCH,
    NO_SEQUENCE,
    SINCE_THE_LAST_ROUND,
    BatchMetadata,
    ProducerEntry,
)
from kaspar.storage.producers.refusals import RETRIED, Refusals
from kaspar.storage.producers.verification import Verification, Verifications
from kaspar.storage.segments.transaction_index import AbortedTransaction

LAST_EPOCH = 0x7FFF
EPOCH_BUMPED_BY_MARKERS = 2
"""From this transaction version on (KIP-890) every transaction ends with a new epoch."""


class CompletedTransaction(NamedTuple):
    """The transaction that a marker at `last_offset` completed."""

    producer_id: int
    first_offset: int
    last_offset: int
    aborted: bool
    last_stable_offset: int
    """The last stable offset without this transaction, if everything up to the marker is committed."""

    @property
    def index_entry(self) -> AbortedTransaction | None:
        """The entry for the index of aborted transactions, if it was aborted."""
        if not self.aborted:
            return None
        return AbortedTransaction(self.producer_id, self.first_offset, self.last_offset, self.last_stable_offset)


class ProducerState:
    __slots__ = (
        "_generation",
        "_ongoing",
        "_refusals",
        "_verifications",
        "decided",
        "entries",
        "first_unstable_offset",
        "topic_partition",
    )

    def __init__(self, topic_partition: TopicPartition) -> None:
        self.topic_partition = topic_partition
        self.entries: dict[int, ProducerEntry] = {}
        self._generation = 0
        # First offset of a transaction -> producer id. Later transactions have larger ones, so the first is the
        # smallest.
        self._ongoing: dict[int, int] = {}
        self.decided: dict[int, int] = {}
        """First offset of a decided transaction -> offset of its marker, which is not below the high watermark yet."""
        self._verifications = Verifications()
        self._refusals = Refusals()
        self.first_unstable_offset: int | None = None

    # Batches

    def check(
        self, producer_id: int, epoch: int, base_sequence: int, offset_delta: int, transactional: bool, offset: int
    ) -> BatchMetadata | None:
        """None if the batch may be written at `offset`, or the batch that it duplicates. Raises Refused otherwise."""
        if transactional:
            return self._check_transactional(producer_id, epoch, base_sequence, offset_delta, offset)
        entry = self.entries.get(producer_id)
        if entry is None:
            self._check_skips_none(producer_id, epoch, base_sequence)
            return None
        if epoch == entry.producer_epoch:
            batches = entry.batches
            last = batches[-1].last_sequence if batches else NO_SEQUENCE
            if base_sequence != last + 1 and not (base_sequence == 0 and last == LAST_SEQUENCE):
                repeated = entry.repeated(base_sequence, offset_delta)
                if repeated is not None:
                    return repeated
                raise self._out_of_order(producer_id, epoch, offset, base_sequence, f"{last} (current end seq. number)")
        else:
            self._check_epoch(entry, epoch, base_sequence, offset)
        if entry.current_txn_first_offset >= 0:
            raise Refused(
                ErrorCode.INVALID_TXN_STATE,
                f"Expected transactional write from producer {producer_id} at offset {offset} in partition "
                f"{self.topic_partition}",
            )
        return None

    def _check_transactional(
        self, producer_id: int, epoch: int, base_sequence: int, offset_delta: int, offset: int
    ) -> BatchMetadata | None:
        """Check a transactional batch. A coordinator writes batches without a sequence on behalf of the producer."""
        entry = self.entries.get(producer_id)
        has_sequence = base_sequence >= 0
        if has_sequence and entry is not None and entry.producer_epoch == epoch:
            repeated = entry.repeated(base_sequence, offset_delta)
            if repeated is not None:
                return repeated
        if not self.in_transaction(producer_id, epoch):
            verification = self._verifications.confirmed(producer_id, epoch)
            if verification is None:
                raise Refused(ErrorCode.INVALID_TXN_STATE, "Record was not part of an ongoing transaction")
            if has_sequence:
                self._check_verified_sequence(verification, entry, producer_id, base_sequence, offset)
        if entry is None:
            if has_sequence:
                self._check_skips_none(producer_id, epoch, base_sequence)
            return None
        if epoch != entry.producer_epoch:
            self._check_epoch(entry, epoch, base_sequence if has_sequence else 0, offset)
        elif has_sequence and not entry.is_followed_by(base_sequence):
            expected = f"{entry.last_sequence} (current end seq. number)"
            raise self._out_of_order(producer_id, epoch, offset, base_sequence, expected)
        return None

    def _check_skips_none(self, producer_id: int, epoch: int, base_sequence: int) -> None:
        """Raise if an earlier batch of an unknown producer was refused and has not been retried."""
        if self._refusals and (reason := self._refusals.reason_before(producer_id, epoch, base_sequence)) is not None:
            raise reason

    def _check_verified_sequence(
        self,
        verification: Verification,
        entry: ProducerEntry | None,
        producer_id: int,
        base_sequence: int,
        offset: int,
    ) -> None:
        """Check the first batch of a transaction here. It must not overtake one that was refused meanwhile."""
        if verification.bumps_epoch and base_sequence != 0 and (entry is None or not entry.batches):
            expected = "0 (expected from an unknown producer)"
            raise self._out_of_order(producer_id, verification.epoch, offset, base_sequence, expected)
        if base_sequence > verification.lowest_sequence:
            earliest = f"{verification.lowest_sequence} (earliest seen sequence)"
            raise self._out_of_order(producer_id, verification.epoch, offset, base_sequence, earliest)

    def _check_epoch(self, entry: ProducerEntry, epoch: int, base_sequence: int, offset: int) -> None:
        """Check an epoch other than the last seen one."""
        if epoch < entry.producer_epoch:
            raise Refused(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Epoch of producer {entry.producer_id} at offset {offset} in {self.topic_partition} is {epoch}, which "
                f"is smaller than the last seen epoch {entry.producer_epoch}",
            )
        if base_sequence != 0 and entry.producer_epoch != NO_EPOCH:
            expected = f"0 (expected at the new epoch {epoch}, after {entry.producer_epoch})"
            raise self._out_of_order(entry.producer_id, epoch, offset, base_sequence, expected)

    def refused(self, producer_id: int, epoch: int, base_sequence: int, reason: Refused) -> None:
        """Remember the reason if a batch was refused and its producer will retry it."""
        if reason.code in RETRIED and base_sequence >= 0:
            self._refusals.add(producer_id, epoch, base_sequence, reason)

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
        """Apply a data batch that was written to the log."""
        entry = self._entry_to_change(producer_id, epoch)
        last_sequence = NO_SEQUENCE if base_sequence < 0 else (base_sequence + offset_delta) & LAST_SEQUENCE
        if self._refusals and base_sequence >= 0:
            self._refusals.accepted(producer_id, epoch, last_sequence)
        entry.batches.append(BatchMetadata(last_sequence, last_offset, offset_delta, timestamp))
        entry.last_timestamp = timestamp
        if transactional:
            self._verifications.drop(producer_id)
            if entry.current_txn_first_offset < 0:
                entry.current_txn_first_offset = first_offset = last_offset - offset_delta
                self._ongoing[first_offset] = producer_id
                self._find_first_unstable_offset()

    def _entry_to_change(self, producer_id: int, epoch: int) -> ProducerEntry:
        """The producer's entry at this epoch: a copy, if the current one is part of a snapshot."""
        entry = self.entries.get(producer_id)
        if entry is None:
            entry = self.entries[producer_id] = ProducerEntry(producer_id, epoch, self._generation)
        else:
            if entry.generation != self._generation:
                entry = self.entries[producer_id] = entry.copied(self._generation)
            if epoch != entry.producer_epoch:
                entry.producer_epoch = epoch
                entry.batches.clear()
        entry.seen_ms = SINCE_THE_LAST_ROUND
        return entry

    # Transactions

    def in_transaction(self, producer_id: int, epoch: int) -> bool:
        """Whether the producer has a transaction open here with this epoch."""
        entry = self.entries.get(producer_id)
        return entry is not None and entry.current_txn_first_offset >= 0 and entry.producer_epoch == epoch

    def begin_verification(
        self,
        producer_id: int,
        epoch: int,
        base_sequence: int,
        *,
        transactional_id: str,
        bumps_epoch: bool,
        now_ms: int,
    ) -> Verification | None:
        """Begin a verification, before the coordinator is asked about a batch that is in no transaction yet. None if it
        is in one. Raises Refused if its epoch is fenced. Afterwards call `confirm` if the coordinator agrees, or
        `withdraw_verification` if it refuses permanently. Call neither if the producer has to retry: then a later batch
        must not overtake this one.
        """
        entry = self.entries.get(producer_id)
        if entry is not None and epoch < entry.producer_epoch:
            raise Refused(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Epoch of producer {producer_id} in {self.topic_partition} is {epoch}, which is smaller than the last "
                f"seen epoch {entry.producer_epoch}",
            )
        if self.in_transaction(producer_id, epoch):
            return None
        claim = (transactional_id, epoch)
        return self._verifications.begin(producer_id, claim, base_sequence, bumps_epoch=bumps_epoch, now_ms=now_ms)

    def confirm(self, producer_id: int, verification: Verification) -> None:
        """Record that the coordinator has confirmed a verification. No effect if a marker was written meanwhile, or
        another batch has begun the transaction.
        """
        if self._verifications.stands(producer_id, verification):
            verification.confirmed = True

    def withdraw_verification(self, producer_id: int, verification: Verification) -> None:
        self._verifications.withdraw(producer_id, verification)

    def check_marker(
        self, producer_id: int, epoch: int, coordinator_epoch: int, transaction_version: int, offset: int
    ) -> None:
        """Raise Refused if a marker may not be written at `offset`: it is from a fenced coordinator, or too late.

        Since transaction version 2 (KIP-890) a marker has a higher epoch than its transaction, so that a late one
        cannot end the next transaction; the last possible epoch is the exception. A repeated marker, when no
        transaction is open, is written again but decides nothing.
        """
        entry = self.entries.get(producer_id)
        if entry is None:
            return
        known = entry.producer_epoch
        bumped = transaction_version >= EPOCH_BUMPED_BY_MARKERS
        may_be_known = not bumped or entry.current_txn_first_offset < 0 or epoch == LAST_EPOCH
        if epoch < known or (epoch == known and not may_be_known):
            raise Refused(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Epoch of producer {producer_id} at offset {offset} in {self.topic_partition} is {epoch}, which is "
                f"{'<=' if bumped else '<'} the last seen epoch {known} (TV{transaction_version})",
            )
        if coordinator_epoch < entry.coordinator_epoch:
            raise Refused(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"Invalid coordinator epoch for producerId {producer_id} at offset {offset} in partition "
                f"{self.topic_partition}: {coordinator_epoch} (zombie), {entry.coordinator_epoch} (current)",
            )

    def check_fence(self, producer_id: int, epoch: int, coordinator_epoch: int) -> bool:
        """Whether a fence with this epoch must be written. Not if the producer has reached this epoch: it is already
        fenced, or its transaction has ended. Raises Refused if the fence is from a fenced coordinator.
        """
        entry = self.entries.get(producer_id)
        if entry is None:
            return True
        if coordinator_epoch < entry.coordinator_epoch:
            raise Refused(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"Invalid coordinator epoch for producerId {producer_id} in partition {self.topic_partition}: "
                f"{coordinator_epoch} (zombie), {entry.coordinator_epoch} (current)",
            )
        return entry.producer_epoch < epoch

    def remember_fence(self, producer_id: int, epoch: int, offset: int, timestamp: int) -> None:
        """Apply a fence that was written to the log. If the transaction has no batch here yet, it begins with the
        fence, since its marker will be written here as well. Verifications of the older epoch become void.
        """
        self.remember(producer_id, epoch, NO_SEQUENCE, 0, offset, timestamp, transactional=True)

    def decided_by(self, producer_id: int, offset: int, *, aborted: bool) -> CompletedTransaction | None:
        """The transaction that a marker at `offset` completes; None if the producer has no transaction open here."""
        entry = self.entries.get(producer_id)
        if entry is None or entry.current_txn_first_offset < 0:
            return None
        first_offset = entry.current_txn_first_offset
        stable = next((first for first in self._ongoing if first != first_offset), offset + 1)
        return CompletedTransaction(producer_id, first_offset, offset, aborted, stable)

    def remember_marker(
        self, producer_id: int, epoch: int, coordinator_epoch: int, offset: int, timestamp: int, *, aborted: bool
    ) -> CompletedTransaction | None:
        """Apply a marker that was written to the log. Returns the transaction that it completed, if one was open."""
        decided = self.decided_by(producer_id, offset, aborted=aborted)
        entry = self._entry_to_change(producer_id, epoch)
        entry.coordinator_epoch = coordinator_epoch
        entry.last_timestamp = timestamp
        self._verifications.marker_written(producer_id, epoch)
        if decided is not None:
            entry.current_txn_first_offset = -1
            self._ongoing.pop(decided.first_offset, None)
            self.decided[decided.first_offset] = offset
            self._find_first_unstable_offset()
        return decided

    def last_stable_offset(self, high_watermark: int) -> int:
        """The offset up to which every transaction is decided: a read_committed reader may read up to here."""
        first = self.first_unstable_offset
        return high_watermark if first is None or first > high_watermark else first

    def high_watermark_moved(self, high_watermark: int) -> None:
        """Stop decided transactions with a committed marker from holding back the last stable offset."""
        if self.decided:
            self.decided = {first: last for first, last in self.decided.items() if last >= high_watermark}
            self._find_first_unstable_offset()

    def _find_first_unstable_offset(self) -> None:
        first = next(iter(self._ongoing), None)
        if self.decided:
            decided = min(self.decided)
            first = decided if first is None else min(first, decided)
        self.first_unstable_offset = first

    def have_ended_transactions(self) -> bool:
        """Whether any known producer has ended a transaction. Safe in any thread."""
        return any(entry.coordinator_epoch >= 0 for entry in list(self.entries.values()))

    def has_late_transaction(self, now_ms: int, after_ms: int) -> bool:
        """Whether the producer of the oldest open transaction has written nothing for `after_ms`."""
        producer_id = next(iter(self._ongoing.values()), None)
        return producer_id is not None and now_ms - self.entries[producer_id].last_timestamp > after_ms

    # All producers

    def restore(self, entries: Iterable[ProducerEntry]) -> None:
        """Replace the state by the entries of a snapshot."""
        self.clear()
        for entry in sorted(entries, key=lambda entry: entry.current_txn_first_offset):
            self.entries[entry.producer_id] = entry
            if entry.current_txn_first_offset >= 0:
                self._ongoing[entry.current_txn_first_offset] = entry.producer_id
        self._find_first_unstable_offset()

    def clear(self) -> None:
        self.entries = {}
        self._ongoing = {}
        self.decided = {}
        self._verifications = Verifications()
        self._refusals.clear()
        self.first_unstable_offset = None

    def taken(self) -> list[ProducerEntry]:
        """All entries, for a snapshot that is written later: these objects do not change any more."""
        self._generation += 1
        return list(self.entries.values())

    def expire(self, now: Moment, expiration_ms: int, at_most: int | None = None) -> Iterator[int]:
        """Forget producers that were idle for too long and have no open transaction. Yields how many, after every
        `at_most` of them, and at the end.

        Idle time is measured on the steady clock. For a producer that has not written since the broker started, only
        the timestamp of its last batch is known, which the producer set; it is compared with the patient clock.
        """
        self._verifications.expire(now.steady_ms, expiration_ms)
        self._refusals.clear()  # only needed while batches are in flight: a retry that is refused adds another
        ids = list(self.entries)
        step = at_most or max(1, len(ids))
        for first in range(0, max(1, len(ids)), step):
            yield sum(self._maybe_expire(producer_id, now, expiration_ms) for producer_id in ids[first : first + step])

    def _maybe_expire(self, producer_id: int, now: Moment, expiration_ms: int) -> bool:
        entry = self.entries.get(producer_id)
        if entry is None:
            return False
        idle_ms = now.believed_ms - entry.last_timestamp
        if entry.seen_ms == SINCE_THE_LAST_ROUND or (entry.seen_ms == BEFORE_THE_START and idle_ms < 0):
            entry.seen_ms = now.steady_ms
        if entry.seen_ms >= 0:
            idle_ms = now.steady_ms - entry.seen_ms
        if entry.current_txn_first_offset >= 0 or idle_ms < expiration_ms:
            return False
        del self.entries[producer_id]
        return True

    def _out_of_order(self, producer_id: int, epoch: int, offset: int, sequence: int, expected: str) -> Refused:
        return self._refusals.reason_before(producer_id, epoch, sequence) or Refused(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"Out of order sequence number for producer {producer_id} at offset {offset} in partition "
            f"{self.topic_partition}: {sequence} (incoming seq. number), {expected}",
        )
