"""The options of kafka-get-offsets, and its output."""

import argparse
import sys
from collections.abc import Sequence

from kaspar.base.errors import KasparError, Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.session import Admin
from kaspar.tools.client_config import add_command_config
from kaspar.tools.client_properties import are_addresses
from kaspar.tools.command_line import CommandFailed, KafkaOptions, open_admin, run
from kaspar.tools.get_offsets.partition_filter import PartitionFilter, of_rules, of_topic_and_partitions
from kaspar.tools.java_numbers import parse_long
from kaspar.tools.kafka_errors import exception_text


def command_options() -> KafkaOptions:
    options = KafkaOptions(
        "kafka-get-offsets",
        "Print the offsets of partitions: topic:partition:offset, a line for each. A partition without such an offset "
        "is left out.",
        example="kafka-get-offsets --bootstrap-server localhost:9092 --topic orders --time earliest",
        complaint="Error occurred: ",
    )
    options.add_argument("--bootstrap-server", metavar="HOST:PORT", help="brokers to connect to. REQUIRED")
    options.add_argument(
        "--topic",
        help="only topics that match this regular expression, or one of several with commas between (default: all)",
    )
    options.add_argument("--partitions", metavar="NUMBERS", help="only these partitions of each topic, such as 0,1,2")
    options.add_argument(
        "--topic-partitions",
        metavar="RULES",
        help="instead of --topic and --partitions: partitions that match one of several rules with commas between. "
        "orders:1 is one partition, orders:1-3 are 1 and 2, orders:1- are all from 1 on, orders:-3 all below 3, orders "
        "all. The topic is a regular expression, and :0 stands for partition 0 of all topics",
    )
    options.add_argument(
        "--time",
        default="latest",
        metavar="TIME",
        help="the offset of the first record at or after this timestamp in ms, or one of latest (-1), the default: the "
        "end of the log; earliest (-2): its beginning; max-timestamp (-3): the record with the largest timestamp; "
        "earliest-local (-4), latest-tiered (-5), earliest-pending-upload (-6): the borders of remote storage",
    )
    add_command_config(options)
    options.add_argument(
        "--exclude-internal-topics", action="store_true", help="leave out internal topics such as __consumer_offsets"
    )
    return options


def main(argv: Sequence[str] | None = None) -> int:
    parser = command_options()
    options = parser.parse(argv)
    parser.require(options, "bootstrap-server")
    if not are_addresses(options.bootstrap_server):
        parser.fail("Please provide valid host:port like host1:9091,host2:9092")
    return run(lambda: _run(options), _report)


def _report(problem: KasparError) -> None:
    print(f"Error occurred: {exception_text(problem)}", file=sys.stderr)


def _run(options: argparse.Namespace) -> None:
    if options.topic_partitions is not None and (options.topic is not None or options.partitions is not None):
        raise CommandFailed("--topic-partitions cannot be used with --topic or --partitions")
    timestamp = _timestamp(options.time)
    if options.topic_partitions is not None:
        chosen = of_rules(options.topic_partitions)
    else:
        chosen = of_topic_and_partitions(options.topic, options.partitions)
    with open_admin(options.bootstrap_server, options.command_config, client_id="GetOffsetShell") as admin:
        partitions = _partitions(admin, chosen, include_internal=not options.exclude_internal_topics)
        if not partitions:
            raise CommandFailed("Could not match any topic-partitions with the specified filters")
        _print_offsets(admin, partitions, timestamp)


def _timestamp(text: str) -> int:
    from kaspar.client.admin.offsets import OffsetSpec

    named = {each.name.lower().replace("_", "-"): each.value for each in OffsetSpec}
    try:
        return named[text] if text in named else parse_long(text)
    except ValueError:
        names = " / ".join(f"{number} or {name}" for name, number in named.items())
        raise CommandFailed(
            f"Malformed time argument {text}. Please use {names}, or a specified long format timestamp"
        ) from None


def _partitions(admin: Admin, chosen: PartitionFilter, *, include_internal: bool) -> list[TopicPartition]:
    from kaspar.client.admin.topics import describe_topics, list_topics

    names = filter(chosen.allows_topic, list_topics(admin, include_internal=include_internal))
    found = []
    for name, topic in describe_topics(admin, list(names)).items():
        if not isinstance(topic, Refused):  # it has just been deleted
            found += [TopicPartition(name, each.partition) for each in topic.partitions]
    return sorted(filter(chosen.allows, found))


def _print_offsets(admin: Admin, partitions: Sequence[TopicPartition], timestamp: int) -> None:
    from kaspar.client.admin.offsets import list_offsets

    listed = list_offsets(admin, dict.fromkeys(partitions, timestamp))
    for where, result in listed.items():
        if isinstance(result, Refused):
            reason = exception_text(result)
            print(f"Skip getting offsets for topic-partition {where} due to error: {reason}", file=sys.stderr)
        elif result.offset >= 0:
            print(f"{where.topic}:{where.partition}:{result.offset}")
