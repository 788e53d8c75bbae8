"""kafka-producer-perf-test: sends records and reports rates and latencies."""

import argparse
import sys
import uuid
from collections.abc import Callable, Sequence
from typing import Final

from kaspar.base.errors import InvalidSetting
from kaspar.tools.argparse4j import Argparse4jOptions
from kaspar.tools.command_line import CommandFailed, run
from kaspar.tools.java_numbers import parse_int, parse_long
from kaspar.tools.perf.payloads import CountingNumbers, Payloads, PickedValues, RandomLetters, read_payload_file
from kaspar.tools.perf.properties import Properties, open_client, read_properties
from kaspar.tools.perf.refusals import report

_TRANSACTION_DURATION_MS: Final = 3000
_CLIENT_ID: Final = "perf-producer-client"
_PROPERTY: Final = "PROP-NAME=PROP-VALUE"


def command_options() -> Argparse4jOptions:
    options = Argparse4jOptions(
        "kafka-producer-perf-test",
        help_code=1,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Send records to a topic, and report how many per second and how long each took.\n"
        "With a transactional id or a duration of transactions they are sent in transactions.",
        epilog="Example: kafka-producer-perf-test --bootstrap-server localhost:9092 --topic test\n"
        "         --num-records 1000000 --record-size 100 --throughput -1 --command-property acks=all linger.ms=10",
    )
    options.add_argument("--bootstrap-server", metavar="BOOTSTRAP-SERVER", help="brokers to connect to")
    options.add_argument("--topic", required=True, metavar="TOPIC", help="the topic to send to. REQUIRED")
    options.add_argument(
        "--num-records", required=True, type=_long, metavar="NUM-RECORDS", help="how many records to send. REQUIRED"
    )
    options.add_argument(
        "--payload-delimiter",
        default="\\n",
        metavar="PAYLOAD-DELIMITER",
        help="what separates the values in a --payload-file: a regular expression (default: \\n)",
    )
    options.add_argument(
        "--throughput",
        required=True,
        type=_double,
        metavar="THROUGHPUT",
        help="send about this many records per second, evenly; -1 for as many as possible. REQUIRED",
    )
    options.add_argument("--producer-props", nargs="+", metavar=_PROPERTY, help="deprecated: --command-property")
    options.add_argument(
        "--command-property",
        nargs="+",
        metavar=_PROPERTY,
        help="settings of the producer, such as linger.ms=10 batch.size=32768; they win over those of a file",
    )
    options.add_argument("--producer.config", metavar="CONFIG-FILE", help="deprecated: --command-config")
    options.add_argument("--command-config", metavar="CONFIG-FILE", help="a file with settings of the producer")
    options.add_argument("--print-metrics", action="store_true", help="print metrics of the producer at the end")
    options.add_argument(
        "--transactional-id", metavar="TRANSACTIONAL-ID", help="send in transactions of this transactional id"
    )
    options.add_argument(
        "--transaction-duration-ms",
        type=_long,
        metavar="TRANSACTION-DURATION",
        help="commit a transaction after this many milliseconds (default with a transactional id: 3000)",
    )
    options.add_argument(
        "--warmup-records",
        type=_long,
        default=0,
        metavar="WARMUP-RECORDS",
        help="report the records after this many separately as well (default: 0)",
    )
    options.add_argument(
        "--reporting-interval",
        type=_long,
        default=5000,
        metavar="INTERVAL-MS",
        help="print a line every N milliseconds (default: 5000)",
    )
    payload = options.add_mutually_exclusive_group(required=True)
    payload.add_argument(
        "--record-size", type=_integer, metavar="RECORD-SIZE", help="send values of this many random letters"
    )
    payload.add_argument(
        "--payload-file", metavar="PAYLOAD-FILE", help="send values of this file (UTF-8), picked at random"
    )
    payload.add_argument("--payload-monotonic", action="store_true", help="send the values 0, 1, 2, ...")
    return options


def _number(kind: str, convert: Callable[[str], float]) -> Callable[[str], float]:
    def parse(text: str) -> float:
        try:
            return convert(text)
        except ValueError:
            sentence = f"could not convert '{text}' to {kind} (For input string: \"{text}\")"
            raise argparse.ArgumentTypeError(sentence) from None

    return parse


_long: Final = _number("Long", parse_long)
_integer: Final = _number("Integer", parse_int)
_double: Final = _number("Double", float)


def main(argv: Sequence[str] | None = None) -> int:
    parser = command_options()
    if not (sys.argv[1:] if argv is None else argv):
        parser.print_help()
        return 0
    options = parser.parse_args(argv)
    _check(parser, options)
    return run(lambda: _run(options), lambda problem: report(problem, topics=options.topic))


def _check(parser: Argparse4jOptions, options: argparse.Namespace) -> None:
    config_file = getattr(options, "producer.config")
    sources = (
        options.bootstrap_server,
        options.command_property,
        options.producer_props,
        config_file,
        options.command_config,
    )
    problems = (
        (options.num_records <= 0, "--num-records should be greater than zero."),
        (
            options.warmup_records >= options.num_records,
            "The value for --warmup-records must be strictly fewer than the number of records in the test, "
            "--num-records.",
        ),
        (options.record_size is not None and options.record_size <= 0, "--record-size should be greater than zero."),
        (
            all(each is None for each in sources),
            "At least one of --bootstrap-server, --command-property, --producer-props, --producer.config or "
            "--command-config must be specified.",
        ),
        (
            options.command_property is not None and options.producer_props is not None,
            "--command-property and --producer-props cannot be specified together.",
        ),
        (
            options.command_config is not None and config_file is not None,
            "--command-config and --producer.config cannot be specified together.",
        ),
        (
            options.transaction_duration_ms is not None and options.transaction_duration_ms <= 0,
            "--transaction-duration-ms should be greater than zero.",
        ),
        (options.reporting_interval <= 0, "--reporting-interval should be greater than zero."),
    )
    for is_wrong, sentence in problems:
        if is_wrong:
            parser.report(sentence)


def _run(options: argparse.Namespace) -> None:
    from kaspar.tools.perf.metrics import print_metrics
    from kaspar.tools.perf.producer_load import LoadOptions, ProducerLoad, Stored
    from kaspar.tools.perf.producer_settings import producer_settings
    from kaspar.tools.perf.producer_statistics import Statistics

    payloads = _payloads(options)
    properties = _properties(options)
    try:
        settings = producer_settings(properties)
    except InvalidSetting as problem:
        raise CommandFailed(str(problem)) from None
    is_transactional = settings.transactional_id is not None
    load_options = LoadOptions(
        options.topic,
        options.num_records,
        options.throughput,
        max(0, options.warmup_records),
        options.transaction_duration_ms or (_TRANSACTION_DURATION_MS if is_transactional else None),
    )
    with open_client(properties, client_id=_CLIENT_ID) as client:
        client.refresh_metadata([])  # fails at once if no broker responds
        statistics: list[Statistics] = []

        def record(stored: Stored, now_ms: float) -> None:
            statistics[0].record(stored.records, stored.size, stored.latency_ms, now_ms)
            if stored.after_warmup and load_options.warmup_records:
                if len(statistics) == 1:
                    statistics[0].silent = True
                    created_ms = now_ms - stored.latency_ms
                    statistics.append(Statistics(created_ms, options.reporting_interval, _say, steady=True))
                statistics[1].record(stored.records, stored.size, stored.latency_ms, now_ms)

        load = ProducerLoad(client, settings, payloads, load_options, record)
        try:
            if load_options.warmup_records:
                _say(
                    f"Warmup first {load_options.warmup_records} records. Steady state results will print after the "
                    "complete test summary."
                )
            statistics.append(Statistics(load.now_ms(), options.reporting_interval, _say, steady=False))
            load.run()
            for each in statistics:
                _say(each.total_line(load.now_ms()))
            if options.print_metrics:
                print_metrics(load.metrics(), properties.get("client.id") or _CLIENT_ID)
        finally:
            load.close()


def _say(line: str) -> None:
    """Print and flush, so that the reader of a pipe sees progress."""
    print(line, flush=True)


def _payloads(options: argparse.Namespace) -> Payloads:
    if options.payload_file is not None:
        delimiter = "\n" if options.payload_delimiter == "\\n" else options.payload_delimiter
        return PickedValues(read_payload_file(options.payload_file, delimiter))
    return CountingNumbers() if options.payload_monotonic else RandomLetters(options.record_size)


def _properties(options: argparse.Namespace) -> Properties:
    config_file = options.command_config
    if options.producer_props is not None:
        print(
            "Option --producer-props has been deprecated and will be removed in a future version. "
            "Use --command-property instead."
        )
    if (old := getattr(options, "producer.config")) is not None:
        print(
            "Option --producer.config has been deprecated and will be removed in a future version. "
            "Use --command-config instead."
        )
        config_file = old
    properties = read_properties(config_file, options.command_property or options.producer_props)
    if options.bootstrap_server is not None:
        properties["bootstrap.servers"] = options.bootstrap_server
    if options.transactional_id is not None:
        properties["transactional.id"] = options.transactional_id
    elif options.transaction_duration_ms is not None:
        properties.setdefault("transactional.id", f"performance-producer-{uuid.uuid4()}")
    return properties


if __name__ == "__main__":
    sys.exit(main())
