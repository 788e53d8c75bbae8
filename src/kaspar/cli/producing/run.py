"""One run of `kaspar produce`: converts each entry to a record and sends it, optionally at a limited rate."""

import time
from dataclasses import dataclass

from kaspar.cli.failures import FAILED, INTERRUPTED
from kaspar.cli.producing.delivery import INTERRUPTED_FLUSH_S, Delivery
from kaspar.cli.producing.reading import BadEntry
from kaspar.cli.producing.report import Report
from kaspar.cli.producing.shaping import Shape
from kaspar.cli.producing.sources import Source
from kaspar.cli.progress import Advance


@dataclass(frozen=True, slots=True)
class Run:
    source: Source
    shape: Shape
    delivery: Delivery
    report: Report
    count: int | None
    """The maximum number of entries to send."""
    rate: float | None
    advance: Advance

    def run(self) -> int:
        """Send all records. Returns the exit code. After Ctrl-C it waits for a short time for records in flight."""
        try:
            self._send_all()
            self.delivery.flush()
        except KeyboardInterrupt:
            self.delivery.flush(INTERRUPTED_FLUSH_S)
            return INTERRUPTED
        return FAILED if self.report.failed else 0

    def _send_all(self) -> None:
        shaped = self.shape.printed_record if self.source.has_records else self.shape.record
        started = time.monotonic()
        for number, entry in enumerate(self.source.entries):
            if self.rate is not None:
                self.delivery.wait_until(started + number / self.rate)
            try:
                if isinstance(entry, BadEntry):
                    raise ValueError(entry.reason)
                self.delivery.send(shaped(entry))
            except ValueError as problem:
                self.delivery.fail(entry.place, str(problem))
            if self.source.is_typed:
                self.delivery.flush()
            self.advance(self.report.delivered)
            if self.count is not None and number + 1 >= self.count:
                return
