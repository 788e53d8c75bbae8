"""kafka-e2e-latency: sends one record after the other, and measures how long each takes to reach a consumer."""

import argparse
import random
import sys
from collections.abc import Sequence
from typing import Final

from kaspar.tools.command_line import CommandFailed, KafkaOptions, command_words, load_properties, run
from kaspar.tools.java_numbers import parse_int
from kaspar.tools.perf.refusals import report

_POSITIONAL: Final = ("bootstrap-server", "topic", "num-records", "producer-acks", "record-size", "command-config")
_REQUIRED: Final = _POSITIONAL[:-1]
_REPORT_EVERY: Final = 1000


def command_options() -> KafkaOptions:
    options = KafkaOptions(
        "kafka-e2e-latency",
        "Measure how long records take from a producer to a consumer, one after the other.",
        example="kafka-e2e-latency --bootstrap-server localhost:9092 --topic test --num-records 10000 "
        "--producer-acks 1 --record-size 100",
    )
    options.add_argument("--bootstrap-server", metavar="HOST:PORT", help="brokers to connect to. REQUIRED")
    options.add_argument("--topic", metavar="NAME", help="the topic to use; created if it does not exist. REQUIRED")
    options.add_argument("--num-records", metavar="COUNT", help="how many records to send. REQUIRED")
    options.add_argument("--producer-acks", metavar="ACKS", help="what the producer waits for: 1 or all. REQUIRED")
    options.add_argument("--record-size", metavar="BYTES", help="the size of each value. REQUIRED")
    numbers = (
        ("--record-key-size", "the size of each key; without it records have no keys"),
        ("--record-header-key-size", "the size of the key of each header"),
        ("--record-header-size", "the size of the value of each header; -1 for null"),
        ("--num-headers", "how many headers each record has"),
    )
    for name, help_text in numbers:
        options.add_argument(
            name, nargs="?", const="0", default="0", metavar="NUMBER", help=f"{help_text} (default: 0)"
        )
    options.add_argument("--command-config", nargs="?", metavar="FILE", help="a file with settings of the clients")
    return options


def main(argv: Sequence[str] | None = None) -> int:
    words = command_words(argv)
    if words and not {f"--{name}" for name in _REQUIRED} & {*words}:
        words = _named(words)
    parser = command_options()
    options = parser.parse(words)
    _check(parser, options)
    return run(lambda: _run(options), lambda problem: report(problem, topics=options.topic))


def _named(words: list[str]) -> list[str]:
    """Convert the old form of the command line, with positional arguments."""
    if not len(_REQUIRED) <= len(words) <= len(_POSITIONAL):
        print(
            f"Invalid number of arguments. Expected 5 or 6 positional arguments, but got {len(words)}. Usage: "
            "bootstrap-server topic num-records producer-acks record-size [optional] command-config",
            file=sys.stderr,
        )
        sys.exit(1)
    print(
        "WARNING: Positional argument usage is deprecated and will be removed in Apache Kafka 5.0. Please use named "
        f"arguments instead: {', '.join(f'--{name}' for name in _POSITIONAL)}"
    )
    return [word for name, value in zip(_POSITIONAL, words, strict=False) for word in (f"--{name}", value)]


def _check(parser: KafkaOptions, options: argparse.Namespace) -> None:
    parser.require(options, *_REQUIRED)
    if options.producer_acks not in ("1", "all"):
        parser.fail(
            "Invalid value for --producer-acks. Latency testing requires synchronous acknowledgement. "
            "Please use '1' or 'all'."
        )
    for name, lowest, kind in (
        ("num-records", 1, "a positive integer"),
        ("record-size", 0, "a non-negative integer"),
        ("record-key-size", 0, "a non-negative integer"),
        ("record-header-key-size", 0, "a non-negative integer"),
        ("record-header-size", -1, "a non-negative integer or -1 for null header value"),
        ("num-headers", 0, "a non-negative integer"),
    ):
        attribute = name.replace("-", "_")
        try:
            value = parse_int(getattr(options, attribute))
        except ValueError:
            parser.fail(f"Cannot parse argument '{getattr(options, attribute)}' of option {name}")
        if value < lowest:
            parser.fail(f"Value for --{name} must be {kind}.")
        setattr(options, attribute, value)


def _run(options: argparse.Namespace) -> None:
    from kaspar.tools.perf.properties import open_client
    from kaspar.tools.perf.round_trips import RoundTrips

    properties = load_properties(options.command_config)
    properties["bootstrap.servers"] = options.bootstrap_server
    with open_client(properties, client_id="e2e-latency") as client:
        _create_if_missing(options, client.refresh_metadata([options.topic]).topics[0].error_code)
        rng = random.Random(0)
        acks = -1 if options.producer_acks == "all" else 1
        latencies_ms: list[float] = []
        with RoundTrips(client, options.topic, acks) as round_trips:
            for number in range(options.num_records):
                key = _letters(rng, options.record_key_size) if options.record_key_size else None
                headers = tuple(_header(rng, options) for _ in range(options.num_headers))
                latency_ms = round_trips.measure(key, _letters(rng, options.record_size), headers)
                if number % _REPORT_EVERY == 0:
                    print(f"{number}\t{latency_ms}", flush=True)
                latencies_ms.append(latency_ms)
    for line in summary(latencies_ms):
        print(line)


def summary(latencies_ms: Sequence[float]) -> list[str]:
    ordered = sorted(map(int, latencies_ms))
    p50, p99, p999 = (ordered[int(len(ordered) * share)] for share in (0.5, 0.99, 0.999))
    return [
        f"Avg latency: {sum(latencies_ms) / len(latencies_ms):.4f} ms",
        f"Percentiles: 50th = {p50}, 99th = {p99}, 99.9th = {p999}",
    ]


def _create_if_missing(options: argparse.Namespace, error_code: int) -> None:
    from kaspar.base.errors import ErrorCode, Refused
    from kaspar.client.admin.creation import NewTopic, create_topics
    from kaspar.tools.command_line import open_admin

    if error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return
    print(
        f'Topic "{options.topic}" does not exist. Will create topic with 1 partition(s) and replication factor = 1',
        flush=True,
    )
    with open_admin(options.bootstrap_server, options.command_config, client_id="e2e-latency") as admin:
        created = create_topics(admin, [NewTopic(options.topic, 1, 1)])[options.topic]
    if isinstance(created, Refused):
        print(f"Creation of topic {options.topic} failed")
        raise CommandFailed(created.message)


def _letters(rng: random.Random, size: int) -> bytes:
    return bytes([rng.randrange(26) + 65]) * size


def _header(rng: random.Random, options: argparse.Namespace) -> tuple[str, bytes | None]:
    key = _letters(rng, options.record_header_key_size).decode()
    return key, None if options.record_header_size < 0 else _letters(rng, options.record_header_size)


if __name__ == "__main__":
    sys.exit(main())
