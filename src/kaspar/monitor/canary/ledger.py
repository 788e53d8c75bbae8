"""The ledgers of all partitions of the canary's topic, and the report on them."""

from collections.abc import Iterable, Mapping

from kaspar.monitor.canary.partition_ledger import PartitionLedger
from kaspar.monitor.canary.report import CanaryStatus, Counts, Latencies, Measured, PartitionReport
from kaspar.monitor.canary.window import availability


class Ledger:
    """Removed partitions keep their counts, so totals never decrease."""

    def __init__(self, *, late_ms: int, window_ms: int) -> None:
        self._late_ms = late_ms
        self._window_ms = window_ms
        self._partitions: dict[int, PartitionLedger] = {}

    def partition(self, number: int) -> PartitionLedger:
        if number not in self._partitions:
            self._partitions[number] = PartitionLedger(late_ms=self._late_ms, window_ms=self._window_ms)
        return self._partitions[number]

    def replace(self) -> None:
        """Called when the topic was deleted, or recreated."""
        for each in self._partitions.values():
            each.replace()

    # --- Reporting ----------------------------------------------------------------------------------------------------

    def counts(self) -> Counts:
        return sum((each.counts() for each in self._partitions.values()), Counts())

    def report(self, leaders: Mapping[int, int], now_ms: float) -> tuple[PartitionReport, ...]:
        """Reports on the partitions of the topic, by number, with their leaders."""
        return tuple(
            PartitionReport(number, leader, ledger.status(now_ms), ledger.counts(), _measured((ledger,), now_ms))
            for number, leader in sorted(leaders.items())
            for ledger in (self.partition(number),)
        )

    def measured(self, numbers: Iterable[int], now_ms: float) -> Measured:
        """The measurements of these partitions together."""
        return _measured([self.partition(number) for number in numbers], now_ms)


def worst(partitions: Iterable[PartitionReport]) -> CanaryStatus:
    """The worst status; STARTING if there are no partitions. A new partition does not reset the status to STARTING."""
    statuses = {each.status for each in partitions}
    return max(statuses, default=CanaryStatus.STARTING)


def _measured(ledgers: Iterable[PartitionLedger], now_ms: float) -> Measured:
    ledgers = list(ledgers)
    produce = [each.produce_totals(now_ms) for each in ledgers]
    consume = [each.consume.totals(now_ms) for each in ledgers]
    return Measured(
        availability(sum(good for good, _ in produce), sum(bad for _, bad in produce)),
        availability(sum(good for good, _ in consume), sum(bad for _, bad in consume)),
        Latencies.of([value for each in ledgers for value in each.produce_latencies.values(now_ms)]),
        Latencies.of([value for each in ledgers for value in each.end_to_end_latencies.values(now_ms)]),
    )
