"""Statistics of stock trades: the lowest ask, number of trades and average ask of the last five seconds, every second.

Reads `trades`, whose keys are symbols; writes to `stock-statistics` with keys of symbol and window.
"""

from dataclasses import dataclass
from datetime import timedelta

from kaspar.streams import StreamsBuilder, TimeWindows, Topology, serdes

WINDOWS = TimeWindows.of_size(timedelta(seconds=5)).advance_by(timedelta(seconds=1))


@dataclass(frozen=True, slots=True)
class Trade:
    ask: float
    size: int


@dataclass(frozen=True, slots=True)
class Statistics:
    trades: int = 0
    lowest_ask: float = float("inf")
    sum_of_asks: float = 0.0
    average_ask: float = 0.0

    def with_trade(self, trade: Trade) -> "Statistics":
        count, total = self.trades + 1, self.sum_of_asks + trade.ask
        return Statistics(count, min(self.lowest_ask, trade.ask), total, total / count)


TRADES = serdes.structured(Trade)
STATISTICS = serdes.structured(Statistics)
WINDOWED_SYMBOLS = serdes.windowed(serdes.text(), WINDOWS.size_ms)


def topology() -> Topology:
    builder = StreamsBuilder()
    trades = builder.stream("trades", key_serde=serdes.text(), value_serde=TRADES)
    statistics = (
        trades.group_by_key()
        .windowed_by(WINDOWS)
        .aggregate(
            Statistics,
            lambda symbol, trade, statistics: statistics.with_trade(trade),
            "trade-statistics",
            value_serde=STATISTICS,
        )
    )
    statistics.to_stream().to("stock-statistics", key_serde=WINDOWED_SYMBOLS)
    return builder.build()
