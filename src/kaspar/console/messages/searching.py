"""A page of records for the web page: reads and filters the records, decodes them, and returns the response."""

from dataclasses import dataclass
from typing import Any, Final

from kaspar.client.cluster import Client
from kaspar.console.messages.filters import Filter
from kaspar.console.messages.reading.batches import StoredRecord
from kaspar.console.messages.reading.scanning import Matches, Page, Query, read_page
from kaspar.console.messages.views import Decoding, RecordView

_MOST_KEPT: Final = 5_000


@dataclass(frozen=True, slots=True)
class Search:
    query: Query
    decoding: Decoding
    filter: str
    now_ms: int
    """The value of `now` in the filter."""

    def run(self, client: Client) -> dict[str, Any]:
        """Read the page. Blocks. Raises FilterError, and the errors of `read_page`."""
        chosen = Filter(self.filter, now_ms=self.now_ms)
        views: dict[tuple[int, int], RecordView] = {}

        def matches(stored: StoredRecord) -> bool:
            view = RecordView(stored, self.decoding)
            if not chosen.matches(view):
                return False
            if len(views) < _MOST_KEPT:
                views[view.partition, view.offset] = view  # so that the row reuses what the filter has decoded
            return True

        page = read_page(client, self.query, None if chosen.passes_all else matches)
        rows = [
            (views.get((each.where.partition, each.offset)) or RecordView(each, self.decoding)).row()
            for each in page.records
        ]
        return {**_summary(page), "records": rows, "undecided": chosen.undecided}


def matcher(text: str, decoding: Decoding, *, now_ms: int) -> Matches | None:
    """The filter as a function; None if every record passes. Raises FilterError."""
    chosen = Filter(text, now_ms=now_ms)
    if chosen.passes_all:
        return None
    return lambda stored: chosen.matches(RecordView(stored, decoding))


def _summary(page: Page) -> dict[str, Any]:
    return {
        "low": str(page.low),
        "high": str(page.high),
        "stopped": page.stopped.value,
        "scanned": page.scanned,
        "partition_count": page.partition_count,
        "scanned_bytes": page.scanned_bytes,
        "partitions": [
            {"partition": partition, "start": each.log_start, "stable": each.last_stable, "end": each.end}
            for partition, each in page.bounds.items()
        ],
        "problems": [
            {"partition": partition, "message": problem} for partition, problem in sorted(page.problems.items())
        ],
    }
