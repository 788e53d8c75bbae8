"""Statistics of stock trades: the lowest ask, the number of trades and the average ask of five seconds, every second.

    python examples/streams/stock_statistics.py --bootstrap-server localhost:9092 --generate

Reads `trades`, whose keys are symbols; writes to `stock-statistics` with keys of symbol and window. The topology is in
kaspar.demo.stock_statistics: `kaspar demo` shows it at work.
"""

import sys
from pathlib import Path

from kaspar.demo.stock_statistics import topology
from kaspar.streams import KafkaStreams


def main() -> None:
    from examples.streams.command_line import generating, parse_arguments
    from kaspar.demo.events import trades

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
