"""The ledger of one partition: what was sent, acknowledged and read, and the conclusions.

Rules:
- At most one record is in flight. An attempt that takes several intervals counts as that many, so that availability is
  a fraction of time, not of attempts.
- Records are read in the order of the log. An acknowledged record is lost when the position has passed its offset
  without finding it, or when the log ends before it. The time that this takes does not matter.
- An offset that is acknowledged again, for another record, shows that the log was truncated, as after an unclean
  election. All remembered records from that offset on are lost, including those that were read before.
- Records that the log no longer has because its start has moved (retention, DeleteRecords) are expired, not lost.
- A record that was not acknowledged is never lost, late or out of order, whether or not it is in the log.

Times are in milliseconds of a monotonic clock.
"""

from dataclasses import dataclass
from typing import Final

from kaspar.base.errors import invariant
from kaspar.monitor.canary.report import CanaryStatus, Counts
from kaspar.monitor.canary.window import Outcomes, RecentValues

REMEMBERED: Final = 1000
"""The number of records remembered per partition. A truncation that reaches further back is only partly counted."""


@dataclass(slots=True, eq=False)
class _Sent:
    sequence: int
    at_ms: float
    intervals: int = 1
    offset: int | None = None
    """The acknowledged offset."""
    read_at: int | None = None
    """The offset at which it was read."""
    has_failed: bool = False
    is_late: bool = False


class PartitionLedger:
    def __init__(self, *, late_ms: int, window_ms: int) -> None:
        self._late_ms = late_ms
        self.position: int | None = None
        """The offset to read next. None until the end of the log has been looked up; nothing is sent before."""
        self._sent: dict[int, _Sent] = {}
        self._unread: dict[int, _Sent] = {}
        """Acknowledged but unread records, in the order of their offsets."""
        self._open: _Sent | None = None
        self._next_sequence = 0
        self._highest_read = -1
        self._failing_since_ms: float | None = None
        self._produced = self._failed = self._consumed = self._lost = 0
        self._doubled = self._late = self._out_of_order = self._expired = 0
        self.produce = Outcomes(window_ms)
        self.consume = Outcomes(window_ms)
        self.produce_latencies = RecentValues(window_ms)
        self.end_to_end_latencies = RecentValues(window_ms)
        self._recent_faults = RecentValues(window_ms)
        self._recent_late = RecentValues(window_ms)

    # --- Producing ----------------------------------------------------------------------------------------------------

    def begin(self, now_ms: float) -> int | None:
        """Start an interval. Returns the sequence number of the record to send, or None while one is in flight or the
        position is unknown."""
        self._count_late(now_ms)
        if self._open is not None:
            self._open.intervals += 1
            return None
        if self.position is None:
            self.miss(now_ms)
            return None
        self._open = record = _Sent(self._next_sequence, now_ms)
        self._next_sequence += 1
        self._sent[record.sequence] = record
        self._forget_oldest()
        return record.sequence

    def miss(self, now_ms: float) -> None:
        """Count an interval in which nothing could be sent."""
        self.produce.failed(now_ms)
        self._is_failing(now_ms)

    def acknowledge(self, sequence: int, offset: int, now_ms: float) -> None:
        record = self._close(sequence)
        self._produced += 1
        self._failing_since_ms = None
        self.produce.succeeded(now_ms, record.intervals)
        self.produce_latencies.add(now_ms - record.at_ms, now_ms)
        self._lose(self._acknowledged_from(offset), now_ms)
        record.offset = offset
        if record.read_at is None:
            self._unread[sequence] = record
            if self.position is not None and self.position > offset:
                self.position = offset  # the log was truncated and has grown again, or else reading will show the loss

    def fail(self, sequence: int, now_ms: float) -> None:
        record = self._close(sequence)
        record.has_failed = True
        self._failed += 1
        self.produce.failed(now_ms, record.intervals)
        self._is_failing(record.at_ms)

    def _close(self, sequence: int) -> _Sent:
        record = self._open
        invariant(record is not None and record.sequence == sequence, "only the record under way has an outcome")
        assert record is not None
        self._open = None
        return record

    def _is_failing(self, since_ms: float) -> None:
        if self._failing_since_ms is None:
            self._failing_since_ms = since_ms

    def _forget_oldest(self) -> None:
        if len(self._sent) > REMEMBERED:
            sequence = next(iter(self._sent))
            del self._sent[sequence]
            if self._unread.pop(sequence, None) is not None:
                self._expired += 1

    # --- Consuming ----------------------------------------------------------------------------------------------------

    def start(self, position: int) -> None:
        """Start reading at the end of the log. Existing records belong to earlier runs."""
        if self.position is None:
            self.position = position

    def read(self, sequence: int, offset: int, now_ms: float) -> None:
        """Count a record of this run that was read."""
        record = self._sent.get(sequence)
        if record is None or record.read_at == offset:
            return  # no longer remembered, or read again after the position was set back
        if record.read_at is not None:
            self._doubled += 1
            self._recent_faults.add(1, now_ms)
            return
        record.read_at = offset
        self._unread.pop(sequence, None)
        self._consumed += 1
        if record.has_failed:
            return
        if sequence < self._highest_read:
            self._out_of_order += 1
            self._recent_faults.add(1, now_ms)
        self._highest_read = max(self._highest_read, sequence)
        latency_ms = now_ms - record.at_ms
        self.end_to_end_latencies.add(latency_ms, now_ms)
        if latency_ms > self._late_ms:
            self._is_late(record, now_ms)
        else:
            self.consume.succeeded(now_ms)

    def advance(self, position: int, now_ms: float) -> None:
        """Everything below this offset has been read."""
        if self.position is None or position <= self.position:
            return
        self.position = position
        passed = [each for each in self._unread.values() if each.offset is not None and each.offset < position]
        self._lose(passed, now_ms)

    def relocate(self, position: int, log_start: int, log_end: int, now_ms: float) -> None:
        """The position is not in the log, whose offsets were these a moment ago. If the position has changed meanwhile,
        nothing is done: records acknowledged since may be beyond that end."""
        if self.position != position:
            return
        if position > log_end:
            self.truncate(log_end, now_ms)
        elif position < log_start:
            self.trim(log_start)

    def truncate(self, log_end: int, now_ms: float) -> None:
        """Called when the log ends before the position."""
        self._lose(self._acknowledged_from(log_end), now_ms)
        unread = [each.offset for each in self._unread.values() if each.offset is not None]
        if self.position is not None:
            self.position = min(self.position, log_end, *unread)

    def trim(self, log_start: int) -> None:
        """Called when the log starts after the position."""
        for record in list(self._unread.values()):
            if record.offset is not None and record.offset < log_start:
                del self._unread[record.sequence]
                self._expired += 1
        if self.position is not None:
            self.position = max(self.position, log_start)

    def replace(self) -> None:
        """Called when the topic was deleted or recreated. A record in flight remains so until its attempt ends."""
        self._expired += len(self._unread)
        self._unread.clear()
        self._sent = {} if self._open is None else {self._open.sequence: self._open}
        self.position = None

    def _acknowledged_from(self, offset: int) -> list[_Sent]:
        return [each for each in self._sent.values() if each.offset is not None and each.offset >= offset]

    def _lose(self, records: list[_Sent], now_ms: float) -> None:
        for record in records:
            del self._sent[record.sequence]
            self._lost += 1
            self._recent_faults.add(1, now_ms)
            if self._unread.pop(record.sequence, None) is not None and not record.is_late:
                self.consume.failed(now_ms)

    def _count_late(self, now_ms: float) -> None:
        for record in self._unread.values():
            if now_ms - record.at_ms <= self._late_ms:
                return  # later records were sent later
            if not record.is_late:
                self._is_late(record, now_ms)

    def _is_late(self, record: _Sent, now_ms: float) -> None:
        if not record.is_late:
            record.is_late = True
            self._late += 1
            self._recent_late.add(1, now_ms)
            self.consume.failed(now_ms)

    # --- Reporting ----------------------------------------------------------------------------------------------------

    def counts(self) -> Counts:
        return Counts(
            self._produced,
            self._failed,
            self._consumed,
            self._lost,
            self._doubled,
            self._late,
            self._out_of_order,
            self._expired,
        )

    def produce_totals(self, now_ms: float) -> tuple[float, float]:
        """The successful and failed intervals of the window. An attempt that takes too long counts as failed at
        once."""
        succeeded, failed = self.produce.totals(now_ms)
        return succeeded, failed + (self._open.intervals if self._open is not None and self._is_stuck(now_ms) else 0)

    def status(self, now_ms: float) -> CanaryStatus:
        self._count_late(now_ms)
        if self._is_stuck(now_ms) or any(each.is_late for each in self._unread.values()):
            return CanaryStatus.UNAVAILABLE
        if self._recent_faults.values(now_ms):
            return CanaryStatus.LOSING
        if self._recent_late.values(now_ms):
            return CanaryStatus.LATE
        return CanaryStatus.OK if self._produced else CanaryStatus.STARTING

    def _is_stuck(self, now_ms: float) -> bool:
        began = [] if self._open is None else [self._open.at_ms]
        began += [] if self._failing_since_ms is None else [self._failing_since_ms]
        return bool(began) and now_ms - min(began) > self._late_ms
