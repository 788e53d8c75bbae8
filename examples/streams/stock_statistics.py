"""Statistics of stock trades: the lowest ask, the number of trades and the average ask of five seconds, every second.

    python examples/streams/stock_statistics.py --bootstrap-server localhost:9092 --generate

Reads `trades`, whose keys are symbols; writes to `stock-statistics` with keys of symbol and window.
"""

import sys
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from kaspar.streams import KafkaStreams, StreamsBuilder, TimeWindows, Topology, serdes

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


def topology() -> Topology:
    builder = StreamsBuilder()
    trades = builder.stream("trades", key_serde=serdes.text(), value_serde=serdes.structured(Trade))
    statistics = (
        trades.group_by_key()
        .windowed_by(WINDOWS)
        .aggregate(
            Statistics,
            lambda symbol, trade, statistics: statistics.with_trade(trade),
            "trade-statistics",
            value_serde=serdes.structured(Statistics),
        )
    )
    statistics.to_stream().to("stock-statistics", key_serde=serdes.windowed(serdes.text(), WINDOWS.size_ms))
    return builder.build()


def main() -> None:
    from examples.streams.command_line import generating, parse_arguments
    from examples.streams.generators import trades

    arguments = parse_arguments(__doc__)
    settings = {
        "application.id": "stock-statistics",
        "bootstrap.servers": arguments.bootstrap_server,
        "processing.guarantee": "exactly_once_v2",
    }
    with generating(arguments, trades, ["trades"]):
        KafkaStreams(topology(), settings).run()


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[2]))  # for the package examples
    main()
