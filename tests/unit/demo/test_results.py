"""What the demo makes of the results that it reads: the last full window, the last views, and the proof of once."""

import pytest

from kaspar.base.errors import KasparError
from kaspar.demo.delays import Delays
from kaspar.demo.results import STOCKS_TOPIC, Stocks, View, Views
from kaspar.demo.stock_statistics import STATISTICS, WINDOWED_SYMBOLS, Statistics, Trade
from kaspar.streams import Window, Windowed, serdes


def result(symbol: str, start: int, statistics: Statistics) -> tuple[bytes, bytes]:
    key = WINDOWED_SYMBOLS.serialize(STOCKS_TOPIC, Windowed(symbol, Window(start, start + 5000)))
    value = STATISTICS.serialize(STOCKS_TOPIC, statistics)
    assert key is not None
    assert value is not None
    return key, value


def with_trades(symbol: str, *seconds: int) -> Stocks:
    """After one trade in each of these seconds, with an ask of 10 and more."""
    stocks, windows = Stocks(), dict[int, Statistics]()
    for number, second in enumerate(seconds):
        for start in range((second - 4) * 1000, second * 1000 + 1, 1000):
            windows[start] = windows.get(start, Statistics()).with_trade(Trade(10.0 + number, 100))
            stocks.apply(*result(symbol, start, windows[start]))
    return stocks


class TestStocks:
    def test_without_results_there_is_no_window(self) -> None:
        assert Stocks().last_window() is None

    def test_the_last_window_is_the_last_that_gets_no_more_trades(self) -> None:
        stocks = with_trades("ACME", *range(100, 110))
        window = stocks.last_window()
        assert window == Window(104_000, 109_000)
        assert stocks.at(window, "ACME") == Statistics(5, 14.0, 80.0, 16.0)
        assert stocks.at(window, "GLOBEX") is None

    def test_before_any_window_is_over_the_first_is_shown(self) -> None:
        assert with_trades("ACME", 100).last_window() == Window(96_000, 101_000)

    def test_a_trade_counts_when_all_its_windows_have_it(self) -> None:
        assert with_trades("ACME", 100, 100, 101).trades == 3

    @pytest.mark.parametrize("trades", [1, 3])
    def test_a_trade_that_was_counted_twice_or_is_missing_ends_the_demo(self, trades: int) -> None:
        stocks = with_trades("ACME", 100)
        with pytest.raises(KasparError, match=f"trade 2 of ACME in a window was counted as trade {trades}"):
            stocks.apply(*result("ACME", 100_000, Statistics(trades, 10.0, 10.0, 10.0)))

    def test_old_windows_are_forgotten(self) -> None:
        stocks = with_trades("ACME", 100, 1000)
        assert stocks.at(Window(100_000, 105_000), "ACME") is None
        assert stocks.at(Window(1000_000, 1005_000), "ACME") is not None


def test_the_last_views_are_kept() -> None:
    views = Views()
    for number in range(100):
        fields = {"page": f"/{number}", "name": "Ada", "city": None, "searched_for": "chess"}
        views.apply(b"user-1", serdes.json().serialize("", fields) or b"")
    assert views.results == 100
    assert views.last[-1] == View("user-1", "/99", "Ada", None, "chess")
    assert len(views.last) == 50


def test_the_middle_delay_is_of_the_latest_records() -> None:
    delays = Delays()
    assert delays.middle_ms is None
    for ms in [*[1.0] * 5000, *[7.0] * 1000]:
        delays.add(ms)
    assert delays.middle_ms == 7.0
