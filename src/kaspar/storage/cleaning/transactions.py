"""The transactions in a pass over a log, tracked batch by batch in the order of their offsets (KIP-98, KIP-534; Kafka's
CleanedTransactionMetadata).

- The records of an aborted transaction are removed.
- A marker stays as long as the pass finds batches of its transaction before it. If there are none, the marker has
  nothing left to end: it gets a delete horizon, and is removed once that has passed.
- An aborted transaction of which batches were found stays in the index of aborted transactions, now that of the new
  segment.

One object is used for a whole pass: a transaction may begin in one segment and end in another.
"""

import heapq
from collections.abc import Iterable

from kaspar.records import BatchHeader, ControlType, Octets, control_type, iter_batch
from kaspar.storage.disk.file_names import TRANSACTION_INDEX
from kaspar.storage.log import Log
from kaspar.storage.segments.transaction_index import AbortedTransaction, TransactionIndex


class CleanedTransactions:
    def __init__(self) -> None:
        # Ordered by first offset, which is the order in which a pass reads them.
        self._ahead: list[tuple[int, AbortedTransaction]] = []
        self._aborted: dict[int, AbortedTransaction] = {}
        self._aborted_with_batches: set[int] = set()
        self._committed_with_batches: set[int] = set()
        self.index: TransactionIndex | None = None
        """The index of the segment that is being written. It gets the aborted transactions that remain."""

    def add_aborted(self, transactions: Iterable[AbortedTransaction]) -> None:
        """Add transactions from the indexes of the next segments. The same transaction may be added repeatedly."""
        for transaction in transactions:
            heapq.heappush(self._ahead, (transaction.first_offset, transaction))

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether the records of a data batch were aborted. False if it is not transactional."""
        self._meet_aborted_up_to(header.last_offset)
        if not header.is_transactional:
            return False
        if header.producer_id in self._aborted:
            self._aborted_with_batches.add(header.producer_id)
            return True
        self._committed_with_batches.add(header.producer_id)
        return False

    def has_nothing_to_end(self, header: BatchHeader, control_type: ControlType | None) -> bool:
        """Whether no reader needs a control batch any more. `control_type` is None if its record is already gone."""
        self._meet_aborted_up_to(header.last_offset)
        match control_type:
            case None:
                return True
            case ControlType.ABORT:
                return not self._end_aborted(header.producer_id)
            case ControlType.COMMIT:
                if header.producer_id in self._committed_with_batches:
                    self._committed_with_batches.discard(header.producer_id)
                    return False
                return True
            case _:
                return False

    def _end_aborted(self, producer_id: int) -> bool:
        """Whether the aborted transaction that ends here has batches."""
        transaction = self._aborted.pop(producer_id, None)
        if transaction is None or producer_id not in self._aborted_with_batches:
            return False
        self._aborted_with_batches.discard(producer_id)
        if self.index is not None:
            self.index.append(transaction)
        return True

    def _meet_aborted_up_to(self, offset: int) -> None:
        while self._ahead and self._ahead[0][0] <= offset:
            _, transaction = heapq.heappop(self._ahead)
            self._aborted.setdefault(transaction.producer_id, transaction)


def aborted_between(owner: Log, begin: int, end: int) -> list[AbortedTransaction]:
    """The aborted transactions with records from `begin` up to, not including, `end`. Their markers may be above it."""
    found: list[AbortedTransaction] = []
    segments = owner.segments
    for segment in segments.all[max(0, segments.slot_of(begin)) :]:
        if segment.aborted_count:
            index = segment.aborted
            if index is None:
                index = TransactionIndex.load(owner.directory.files, segment.path(TRANSACTION_INDEX))
            if index.collect(begin, end, found):
                break
    return found


def control_type_of(data: Octets, position: int, header: BatchHeader) -> ControlType | None:
    """The type of the control batch at `position`; None if compaction has removed its record."""
    for record in iter_batch(data, position, header):
        return control_type(record)
    return None
