"""The history of rates and gauges, of each broker and of the cluster."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kaspar.base.ids import TopicPartition
from kaspar.monitor.scraping.catalogue import MEASURES
from kaspar.monitor.scraping.counters import CounterRates
from kaspar.monitor.series import Series
from kaspar.monitor.views import Point

_CAPACITY: Final = 1_800
_BY_NAME: Final = {each.name: each for each in MEASURES}


class Rates:
    """Names are those in `kaspar.monitor.scraping.catalogue`: `messages_in`, `bytes_in`, `produce_p99_ms` ..."""

    def __init__(self, *, history_ms: int) -> None:
        self._history_ms = history_ms
        self._counters: CounterRates[tuple[str, int]] = CounterRates()
        self._ends: tuple[Mapping[TopicPartition, int] | None, int] = (None, 0)
        self._series: dict[tuple[str, int | None], Series] = {}

    @property
    def names(self) -> list[str]:
        """The names of series that have values."""
        return sorted({name for name, _ in self._series})

    @property
    def brokers(self) -> list[int]:
        return sorted({broker for _, broker in self._series if broker is not None})

    def series(self, name: str, since_ms: int, broker: int | None = None) -> Sequence[Point]:
        """The series of the cluster or of one broker, oldest first; empty if the name has no values."""
        series = self._series.get((name, broker))
        if series is None:
            return ()
        return [Point(at_ms, value) for at_ms, (value,) in series.since(since_ms) if value is not None]

    def latest(self, name: str, broker: int | None = None) -> float | None:
        series = self._series.get((name, broker))
        row = None if series is None else series.last()
        return None if row is None else row[1][0]

    def add_pages(self, pages: Mapping[int, Mapping[str, float]], at_ms: int) -> None:
        """Add the values read from brokers' pages at one time. Brokers whose page could not be read are missing."""
        now: dict[str, list[float]] = {}
        for broker, values in pages.items():
            for name, value in values.items():
                measured = self._counters.rate((name, broker), value, at_ms) if _BY_NAME[name].is_counter else value
                if measured is not None:
                    self._append(name, broker, at_ms, measured)
                    now.setdefault(name, []).append(measured)
        for name, measurements in now.items():
            self._append(name, None, at_ms, _BY_NAME[name].joined.of(measurements))

    def add_ends(self, ends: Mapping[TopicPartition, int], at_ms: int) -> None:
        """Without pages, derive a rate from the high watermarks of all logs. Deleted or truncated logs have not
        grown."""
        before, before_ms = self._ends
        if before is not None and at_ms <= before_ms:
            return
        self._ends = (ends, at_ms)
        if before is not None:
            grown = sum(max(end - before[where], 0) for where, end in ends.items() if where in before)
            self._append("messages_in", None, at_ms, grown / (at_ms - before_ms) * 1000)

    def add_gauges(self, gauges: Iterable[tuple[str, float]], at_ms: int) -> None:
        """Add values of the cluster from other sources."""
        for name, value in gauges:
            self._append(name, None, at_ms, value)

    def _append(self, name: str, broker: int | None, at_ms: int, value: float) -> None:
        series = self._series.get((name, broker))
        if series is None:
            series = self._series[name, broker] = Series(keep_ms=self._history_ms, capacity=_CAPACITY)
        series.append(at_ms, value)
