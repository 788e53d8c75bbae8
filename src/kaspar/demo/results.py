"""The programs' results, as the demo's consumer has read them. No I/O.

Every trade has one result in each of its windows, with the number of trades so far. A trade that was processed twice
or not at all is therefore detected by a number that is not the previous one plus one.
"""

from collections import defaultdict, deque
from dataclasses import dataclass
from typing import Any, Final

from kaspar.base.errors import KasparError
from kaspar.demo.delays import Delays
from kaspar.demo.stock_statistics import STATISTICS, WINDOWED_SYMBOLS, WINDOWS, Statistics
from kaspar.streams import Window, serdes

STOCKS_TOPIC: Final = "stock-statistics"
VIEWS_TOPIC: Final = "enriched-views"
_WINDOWS_OF_A_TRADE: Final = WINDOWS.size_ms // WINDOWS.advance_ms
_KEPT_MS: Final = 60_000
_KEPT_VIEWS: Final = 50
_JSON: Final = serdes.json()


class Stocks:
    def __init__(self) -> None:
        self.delays = Delays()
        self.results = 0
        self._windows: dict[str, dict[int, Statistics]] = defaultdict(dict)

    @property
    def trades(self) -> int:
        """The number of trades that are counted in all of their windows."""
        return self.results // _WINDOWS_OF_A_TRADE

    @property
    def symbols(self) -> list[str]:
        return sorted(self._windows)

    def apply(self, key: bytes, value: bytes) -> None:
        """Apply a record of the topic. Raises KasparError if a trade was counted twice or is missing."""
        windowed = WINDOWED_SYMBOLS.deserialize(STOCKS_TOPIC, key)
        statistics = STATISTICS.deserialize(STOCKS_TOPIC, value)
        assert windowed is not None
        assert statistics is not None
        symbol, window = windowed
        windows = self._windows[symbol]
        before = windows.get(window.start, Statistics()).trades
        if statistics.trades != before + 1:
            raise KasparError(
                f"trade {before + 1} of {symbol} in a window was counted as trade {statistics.trades}: "
                "results are not exactly once"
            )
        windows[window.start] = statistics
        self.results += 1
        for start in [start for start in windows if start < window.start - _KEPT_MS]:
            del windows[start]

    def last_window(self) -> Window | None:
        """The latest window that has ended, or the first window if none has."""
        starts = {start for windows in list(self._windows.values()) for start in list(windows)}
        if not starts:
            return None
        over = max(starts) - WINDOWS.size_ms
        start = max(over, min(starts))
        return Window(start, start + WINDOWS.size_ms)

    def at(self, window: Window, symbol: str) -> Statistics | None:
        return self._windows[symbol].get(window.start)


@dataclass(frozen=True, slots=True)
class View:
    """An enriched page view."""

    user: str
    page: str
    name: str | None
    city: str | None
    searched_for: str | None


class Views:
    def __init__(self) -> None:
        self.delays = Delays()
        self.results = 0
        self.last: deque[View] = deque(maxlen=_KEPT_VIEWS)

    def apply(self, key: bytes, value: bytes) -> None:
        fields: Any = _JSON.deserialize(VIEWS_TOPIC, value)
        self.last.append(View(key.decode(), **fields))
        self.results += 1
