"""kafka-consumer-perf-test: reads records and reports rates."""

import argparse
import random
import re
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import InvalidSetting
from kaspar.tools.client_properties import key_values
from kaspar.tools.command_line import CommandFailed, KafkaOptions, integer, load_properties, long_integer, run
from kaspar.tools.perf.java_dates import format_date
from kaspar.tools.perf.refusals import report

if TYPE_CHECKING:
    from kaspar.client import Client
    from kaspar.tools.perf.consumer_load import Consumed, ConsumerOptions
    from kaspar.tools.perf.properties import Properties

_CLIENT_ID: Final = "perf-consumer-client"
_MIB: Final = 1024.0 * 1024.0
_RATES: Final = ", rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
_TIMEOUT_MS: Final = 10_000


def command_options() -> KafkaOptions:
    options = KafkaOptions(
        "kafka-consumer-perf-test",
        "Read records of a topic as a member of a group, and report how many per second.",
        example="kafka-consumer-perf-test --bootstrap-server localhost:9092 --topic test --num-records 1000000",
    )
    options.add_argument("--bootstrap-server", metavar="HOST:PORT", help="brokers to connect to. REQUIRED")
    options.add_argument("--topic", help="the topic to read. This or --include is REQUIRED")
    options.add_argument("--include", metavar="REGEX", help="read all topics whose names match this expression")
    options.add_argument(
        "--num-records", type=long_integer, metavar="COUNT", help="how many records to read, at least. REQUIRED"
    )
    options.add_argument("--messages", type=long_integer, metavar="COUNT", help="deprecated: --num-records")
    options.add_argument("--group", metavar="ID", help="the group to join (default: perf-consumer- and a number)")
    options.add_argument(
        "--from-latest",
        action="store_true",
        help="begin at the end of the log, not at its start, where the group has committed nothing",
    )
    options.add_argument(
        "--fetch-size",
        type=integer,
        default=1 << 20,
        metavar="BYTES",
        help="the most that a response has of one partition (default: 1048576)",
    )
    options.add_argument(
        "--socket-buffer-size",
        type=integer,
        default=2 << 20,
        metavar="BYTES",
        help="accepted, and left to the system, which sizes buffers by itself (default: 2097152)",
    )
    options.add_argument(
        "--timeout",
        type=long_integer,
        nargs="?",
        default=_TIMEOUT_MS,
        const=_TIMEOUT_MS,
        metavar="MS",
        help="end after so long without records (default: 10000)",
    )
    options.add_argument("--show-detailed-stats", action="store_true", help="a line for each interval, not for all")
    options.add_argument(
        "--reporting-interval", type=long_integer, default=5000, metavar="MS", help="the interval (default: 5000)"
    )
    options.add_argument("--hide-header", action="store_true", help="do not print the names of the columns")
    options.add_argument(
        "--date-format",
        default="yyyy-MM-dd HH:mm:ss:SSS",
        metavar="PATTERN",
        help="how times are printed, as in java.text.SimpleDateFormat (default: yyyy-MM-dd HH:mm:ss:SSS)",
    )
    options.add_argument("--print-metrics", action="store_true", help="print metrics of the consumer at the end")
    options.add_argument(
        "--command-property",
        action="append",
        metavar="NAME=VALUE",
        help="a setting of the consumer, such as isolation.level=read_committed; may be given several times",
    )
    options.add_argument("--command-config", metavar="FILE", help="a file with settings of the consumer")
    options.add_argument("--consumer.config", metavar="FILE", help="deprecated: --command-config")
    return options


def main(argv: Sequence[str] | None = None) -> int:
    parser = command_options()
    options = parser.parse(argv)
    _check(parser, options)
    topics = options.topic or options.include
    return run(lambda: _run(options), lambda problem: report(problem, topics=topics, group=options.group))


def _check(parser: KafkaOptions, options: argparse.Namespace) -> None:
    parser.require(options, "bootstrap-server")
    if (options.topic is None) == (options.include is None):
        parser.fail("Exactly one of the following arguments is required: [topic], [include]")
    if (options.messages is None) == (options.num_records is None):
        parser.fail("Exactly one of the following arguments is required: [messages], [num-records]")
    if getattr(options, "consumer.config") is not None and options.command_config is not None:
        parser.fail('Option "[consumer.config]" can\'t be used with option "[command-config]"')


def _run(options: argparse.Namespace) -> None:
    from kaspar.tools.perf.consumer_load import ConsumerLoad
    from kaspar.tools.perf.properties import open_client

    _print_header(options)
    format_date(options.date_format, 0)
    if options.reporting_interval <= 0:
        raise CommandFailed("Reporting interval must be greater than 0.")
    properties = _properties(options)
    with open_client(properties, client_id=_CLIENT_ID) as client:
        client.refresh_metadata([])  # fails at once if no broker responds
        reported = _Report(options)
        load = ConsumerLoad(client, _consumer_options(client, options, properties), reported.progress)
        try:
            if not load.run():
                print(
                    f"WARNING: Exiting before consuming the expected number of records: timeout ({options.timeout} ms) "
                    "exceeded. You can use the --timeout option to increase the timeout."
                )
            end_ms = time.time() * 1000
        finally:
            load.close()
        if not options.show_detailed_stats:
            reported.total(load.consumed, end_ms)
        if options.print_metrics:
            _print_metrics(load.consumed, end_ms - reported.start_ms, properties)


def _print_header(options: argparse.Namespace) -> None:
    if options.messages is not None:
        print("Warning: --messages is deprecated. Use --num-records instead.")
    if getattr(options, "consumer.config") is not None:
        print("Warning: --consumer.config is deprecated. Use --command-config instead.")
    if options.hide_header:
        return
    times = "time, threadId" if options.show_detailed_stats else "start.time, end.time"
    print(f"{times}, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec{_RATES}", flush=True)


def _properties(options: argparse.Namespace) -> "Properties":
    properties = load_properties(options.command_config or getattr(options, "consumer.config"))
    properties |= key_values(options.command_property or ())
    properties["bootstrap.servers"] = options.bootstrap_server
    return properties


def _consumer_options(client: "Client", options: argparse.Namespace, properties: "Properties") -> "ConsumerOptions":
    from kaspar.tools.librdkafka.values import boolean, choice
    from kaspar.tools.perf.consumer_load import ConsumerOptions
    from kaspar.tools.perf.fetching import FetchTerms
    from kaspar.tools.perf.properties import number

    levels = ("read_uncommitted", "read_committed")
    try:
        terms = FetchTerms(
            partition_max_bytes=options.fetch_size,
            max_bytes=number(properties, "fetch.max.bytes", 50 << 20),
            min_bytes=number(properties, "fetch.min.bytes", 1),
            max_wait_ms=number(properties, "fetch.max.wait.ms", 500),
            isolation_level=levels.index(
                choice("isolation.level", properties.get("isolation.level", levels[0]), levels)
            ),
        )
        return ConsumerOptions(
            group_id=options.group or properties.get("group.id") or f"perf-consumer-{random.randrange(100_000)}",
            topics=[options.topic] if options.topic is not None else _matching(client, options.include),
            num_records=options.messages if options.num_records is None else options.num_records,
            timeout_ms=options.timeout,
            reset="latest" if options.from_latest else "earliest",
            auto_commit=boolean("enable.auto.commit", properties.get("enable.auto.commit", "true")),
            max_poll_records=max(1, number(properties, "max.poll.records", 500)),
            terms=terms,
        )
    except InvalidSetting as problem:
        raise CommandFailed(str(problem)) from None


def _matching(client: "Client", pattern: str) -> list[str]:
    """Leaves out internal topics, like a consumer that subscribes to a pattern."""
    try:
        expression = re.compile(pattern)
    except re.error as problem:
        raise CommandFailed(f"{pattern!r} is not a regular expression: {problem}") from None
    found = client.refresh_metadata(None)
    names = [topic.name for topic in found.topics if topic.name is not None and not topic.is_internal]
    return sorted(name for name in names if expression.fullmatch(name))


class _Report:
    def __init__(self, options: argparse.Namespace) -> None:
        self.start_ms = time.time() * 1000
        self._options = options
        self._window_ms = self.start_ms
        self._records = 0
        self._size = 0
        self._joining_ms = 0

    def progress(self, consumed: "Consumed") -> None:
        now_ms = time.time() * 1000
        if now_ms - self._window_ms < self._options.reporting_interval:
            return
        if self._options.show_detailed_stats:
            print(self._window_line(consumed, now_ms), flush=True)
        self._window_ms, self._joining_ms = now_ms, consumed.joining_ms
        self._records, self._size = consumed.records, consumed.size

    def _window_line(self, consumed: "Consumed", now_ms: float) -> str:
        elapsed_ms = int(now_ms - self._window_ms)
        joining_ms = consumed.joining_ms - self._joining_ms
        fetching_ms = elapsed_ms - joining_ms
        mib, records = (consumed.size - self._size) / _MIB, consumed.records - self._records
        return (
            f"{format_date(self._options.date_format, now_ms)}, 0, {consumed.size / _MIB:.4f}, "
            f"{_per_s(mib, elapsed_ms):.4f}, {consumed.records}, {_per_s(records, elapsed_ms):.4f}, "
            f"{joining_ms}, {fetching_ms}, {_per_s(mib, fetching_ms):.4f}, {_per_s(records, fetching_ms):.4f}"
        )

    def total(self, consumed: "Consumed", end_ms: float) -> None:
        elapsed_ms = int(end_ms) - int(self.start_ms)
        fetching_ms = elapsed_ms - consumed.joining_ms
        mib = consumed.size / _MIB
        date_format = self._options.date_format
        print(
            f"{format_date(date_format, self.start_ms)}, {format_date(date_format, end_ms)}, {mib:.4f}, "
            f"{_per_s(mib, elapsed_ms):.4f}, {consumed.records}, {_per_s(consumed.records, elapsed_ms):.4f}, "
            f"{consumed.joining_ms}, {fetching_ms}, {_per_s(mib, fetching_ms):.4f}, "
            f"{_per_s(consumed.records, fetching_ms):.4f}"
        )


def _per_s(amount: float, elapsed_ms: int) -> float:
    return amount * 1000 / elapsed_ms if elapsed_ms > 0 else 0.0


def _print_metrics(consumed: "Consumed", elapsed_ms: float, properties: "Properties") -> None:
    from kaspar.tools.perf.metrics import print_metrics

    seconds = max(1e-3, elapsed_ms / 1000)
    metrics = {
        "bytes-consumed-rate": consumed.size / seconds,
        "bytes-consumed-total": float(consumed.size),
        "records-consumed-rate": consumed.records / seconds,
        "records-consumed-total": float(consumed.records),
    }
    client_id = properties.get("client.id") or _CLIENT_ID
    print_metrics(metrics, client_id, "consumer-fetch-manager-metrics")


if __name__ == "__main__":
    sys.exit(main())
