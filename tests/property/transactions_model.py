"""What a list of batches says about transactions, worked out in the plainest way; and a read_committed reader."""

from dataclasses import dataclass, field
from typing import NamedTuple

from kaspar.records import ControlType, iter_headers, iter_records, read_end_transaction_marker
from kaspar.storage import AbortedTransaction


@dataclass(frozen=True)
class Batch:
    """One batch of the model: its place, its bytes, and its producer."""

    base_offset: int
    content: bytes
    count: int
    producer_id: int = -1
    base_sequence: int = -1
    epoch: int = -1
    transactional: bool = False
    aborts: bool | None = None
    """Of a marker: how it ends the transaction."""

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.count


class Open(NamedTuple):
    first_offset: int
    batches: list[Batch]


@dataclass
class Transactions:
    """All that follows from the batches of a log, from the first one on."""

    open: dict[int, Open] = field(default_factory=dict)
    aborted: list[AbortedTransaction] = field(default_factory=list)
    aborted_batches: set[int] = field(default_factory=set)
    """The base offsets of batches that no read_committed reader may see."""

    @staticmethod
    def of(batches: list[Batch]) -> "Transactions":
        found = Transactions()
        for batch in batches:
            if batch.aborts is not None:
                found._end(batch)
            elif batch.transactional:
                found.open.setdefault(batch.producer_id, Open(batch.base_offset, [])).batches.append(batch)
        return found

    def _end(self, marker: Batch) -> None:
        ended = self.open.pop(marker.producer_id, None)
        if ended is None or not marker.aborts:
            return
        stable = min((other.first_offset for other in self.open.values()), default=marker.next_offset)
        self.aborted.append(AbortedTransaction(marker.producer_id, ended.first_offset, marker.base_offset, stable))
        self.aborted_batches.update(batch.base_offset for batch in ended.batches)


class CommittedReader:
    """Leaves out what a client with isolation.level=read_committed leaves out, from nothing but what it is given."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, bytes | None]] = []

    def take(self, offset: int, data: bytes | bytearray, aborted: list[AbortedTransaction]) -> int:
        """The offset to go on with."""
        upcoming = sorted(aborted, key=lambda transaction: transaction.first_offset)
        aborting: set[int] = set()
        for start, header in iter_headers(data, 0, len(data)):
            while upcoming and upcoming[0].first_offset <= header.last_offset:
                aborting.add(upcoming.pop(0).producer_id)
            records = list(iter_records(data, start, start + header.size))
            if header.is_control:
                # Compaction may leave the batch of a marker without its record.
                if records and read_end_transaction_marker(records[0]).control_type is ControlType.ABORT:
                    aborting.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in aborting):
                self.seen += [(record.offset, record.value) for record in records if record.offset >= offset]
            offset = max(offset, header.next_offset)
        return offset
