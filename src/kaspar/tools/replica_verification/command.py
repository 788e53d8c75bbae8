"""The options of kafka-replica-verification, and its reports.

All brokers must be up when it starts. A broker that fails later delays the verification of its partitions.
"""

import argparse
import re
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import datetime

from kaspar.base.errors import KasparError
from kaspar.base.ids import NO_OFFSET, TopicPartition
from kaspar.client import Client
from kaspar.client.admin.cluster import describe_cluster
from kaspar.client.admin.session import Admin
from kaspar.client.admin.topics import TopicDescription, describe_topics, list_topics
from kaspar.client.cluster import LATEST_TIMESTAMP
from kaspar.client.offsets import offsets_at
from kaspar.tools.command_line import CommandFailed, KafkaOptions, integer, open_admin, run
from kaspar.tools.include_list import topic_pattern
from kaspar.tools.kafka_errors import report
from kaspar.tools.replica_verification.comparison import OffsetsDiffer, ReplicaComparison
from kaspar.tools.replica_verification.reading import ReplicaReader

Partitions = Mapping[TopicPartition, Sequence[int]]
"""The replicas of each partition."""


def command_options() -> KafkaOptions:
    options = KafkaOptions(
        "kafka-replica-verification",
        "Validate that all replicas for a set of topics have the same data, until Ctrl-C.",
        example="kafka-replica-verification --broker-list localhost:9092 --topics-include 'orders.*' --time -2",
    )
    options.add_argument("--broker-list", metavar="HOST:PORT", help="brokers to connect to. REQUIRED")
    options.add_argument(
        "--fetch-size",
        type=integer,
        default=1024 * 1024,
        metavar="BYTES",
        help="of each partition in a request (default: %(default)s)",
    )
    options.add_argument(
        "--max-wait-ms",
        type=integer,
        default=1_000,
        metavar="MS",
        help="how long a request waits for records (default: %(default)s)",
    )
    options.add_argument(
        "--topics-include",
        default=".*",
        metavar="REGEX",
        help="the topics to verify, as one regular expression or several, comma-separated (default: %(default)s)",
    )
    options.add_argument(
        "--time",
        type=integer,
        default=LATEST_TIMESTAMP,
        metavar="MS",
        help="the timestamp from which to verify: -1 (the latest), -2 (the earliest), or milliseconds since 1970 "
        "(default: %(default)s)",
    )
    options.add_argument(
        "--report-interval-ms",
        type=integer,
        default=30_000,
        metavar="MS",
        help="how often to report the lag (default: %(default)s)",
    )
    return options


def main(argv: Sequence[str] | None = None) -> int:
    parser = command_options()
    options = parser.parse(argv)
    parser.require(options, "broker-list")
    return run(lambda: _verify(options), _report)


def _report(problem: KasparError) -> None:
    if isinstance(problem, OffsetsDiffer):
        _say(str(problem))
    else:
        report(problem)


def _say(text: str) -> None:
    now = datetime.now()
    print(f"{now:%Y-%m-%d %H:%M:%S},{now.microsecond // 1000:03}: {text}", flush=True)


def _verify(options: argparse.Namespace) -> None:
    pattern = _pattern(options.topics_include)
    with open_admin(options.broker_list, client_id="replica-verification-tool") as admin:
        topics = _topics(admin, pattern)
        partitions = {
            TopicPartition(topic.name, each.partition): each.replicas for topic in topics for each in topic.partitions
        }
        _check_brokers(admin, partitions)
        comparison = ReplicaComparison(_initial_offsets(admin.client, partitions, options.time))
        _say("verification process is started")
        with ReplicaReader(
            admin.client,
            {topic.name: topic.topic_id for topic in topics},
            partitions,
            fetch_size=options.fetch_size,
            max_wait_ms=options.max_wait_ms,
        ) as reader:
            reported = time.monotonic()
            while True:
                fetched = reader.read(comparison.offsets)
                for sentence in comparison.compare(fetched):
                    _say(sentence)
                if time.monotonic() - reported > options.report_interval_ms / 1000:
                    reported = time.monotonic()
                    lag, where, offset = comparison.max_lag(fetched)
                    _say(f"max lag is {lag} for partition {where} at offset {offset} among {len(fetched)} partitions")


def _check_brokers(admin: Admin, partitions: Partitions) -> None:
    up = {each.node_id for each in describe_cluster(admin).nodes}
    if missing := sorted({broker_id for replicas in partitions.values() for broker_id in replicas} - up):
        names = ", ".join(map(str, missing))
        raise CommandFailed(f"All brokers that have replicas must be up at the start, and these are not: {names}")


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return topic_pattern(text)
    except CommandFailed as problem:  # this command of Kafka prints the message without a full stop
        raise CommandFailed(str(problem).rstrip(".")) from None


def _topics(admin: Admin, pattern: re.Pattern[str]) -> list[TopicDescription]:
    names = [name for name in list_topics(admin) if pattern.fullmatch(name)]
    topics = [each for each in describe_topics(admin, names).values() if isinstance(each, TopicDescription)]
    if not topics:
        raise CommandFailed(
            "No topics found. [topics-include] if specified, is either filtering out all topics or there is no topic."
        )
    return topics


def _initial_offsets(client: Client, partitions: Partitions, timestamp: int) -> dict[TopicPartition, int]:
    """The offsets at this time. For a partition without a record since then, the end of the log."""
    found = offsets_at(client, partitions, timestamp)
    behind = [where for where, offset in found.items() if offset == NO_OFFSET]
    return found | offsets_at(client, behind, LATEST_TIMESTAMP)


if __name__ == "__main__":
    sys.exit(main())
