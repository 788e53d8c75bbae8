"""kafka-leader-election: elects the preferred leaders of partitions, or any live replica (unclean)."""

import argparse
import sys
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.elections import ElectionType, elect_leaders
from kaspar.client.admin.session import Admin
from kaspar.tools import json_fields
from kaspar.tools.client_config import add_command_config
from kaspar.tools.command_line import (
    CommandFailed,
    KafkaOptions,
    integer,
    open_admin,
    read_file,
    run,
)
from kaspar.tools.kafka_errors import exception_text, report

API_TIMEOUT_S: Final = 30.0
REQUEST_TIMEOUT_S: Final = 15.0


def command_options() -> KafkaOptions:
    options = KafkaOptions(
        "kafka-leader-election",
        "Attempt to elect a new leader for a set of topic partitions: the preferred replica, or any live one.",
        example="kafka-leader-election --bootstrap-server localhost:9092 --election-type preferred "
        "--all-topic-partitions",
    )
    options.add_argument("--bootstrap-server", metavar="HOST:PORT", help="brokers to connect to. REQUIRED")
    options.add_argument(
        "--election-type",
        type=_election_type,
        metavar="TYPE",
        help="'preferred': elect the first replica of a partition, if it is in sync and not the leader already. "
        "'unclean': elect any live replica of a partition that has no leader; records that it lacks are lost. REQUIRED",
    )
    options.add_argument("--topic", help="the topic for which to perform an election")
    options.add_argument(
        "--partition", type=integer, metavar="ID", help="the partition of --topic. REQUIRED with --topic"
    )
    options.add_argument("--all-topic-partitions", action="store_true", help="all partitions that need an election")
    options.add_argument(
        "--path-to-json-file",
        metavar="FILE",
        help='a JSON file with the partitions: {"partitions": [{"topic": "foo", "partition": 1}]}',
    )
    add_command_config(options)
    options.add_argument("--admin.config", dest="admin_config", metavar="FILE", help="deprecated: --command-config")
    return options


def _election_type(text: str) -> ElectionType:
    try:
        return ElectionType[text.upper()]
    except KeyError:
        raise argparse.ArgumentTypeError(f"Cannot parse argument '{text}'") from None


def main(argv: Sequence[str] | None = None) -> int:
    parser = command_options()
    options = parser.parse(argv)
    return run(lambda: _run(parser, options), report)


def _run(parser: KafkaOptions, options: argparse.Namespace) -> None:
    _check(parser, options)
    partitions = _partitions(options)
    config_file = options.command_config
    if options.admin_config is not None:
        print(
            "Option --admin.config has been deprecated and will be removed in a future version. "
            "Use --command-config instead."
        )
        config_file = options.admin_config
    with open_admin(
        options.bootstrap_server,
        config_file,
        client_id="leader-election-tool",
        api_timeout_s=API_TIMEOUT_S,
        request_timeout_s=REQUEST_TIMEOUT_S,
    ) as admin:
        _elect(admin, options.election_type, partitions)


def _check(parser: KafkaOptions, options: argparse.Namespace) -> None:
    needed = {"bootstrap-server": options.bootstrap_server, "election-type": options.election_type}
    if missing := [name for name, value in needed.items() if value is None]:
        raise CommandFailed(f"Missing required option(s): {', '.join(missing)}")
    if options.admin_config is not None and options.command_config is not None:
        parser.fail('Option "[admin.config]" can\'t be used with option "[command-config]"')
    chosen = [options.topic is not None, options.all_topic_partitions, options.path_to_json_file is not None]
    if sum(chosen) != 1:
        raise CommandFailed(
            "One and only one of the following options is required: topic, all-topic-partitions, path-to-json-file"
        )
    if options.topic is not None and options.partition is None:
        raise CommandFailed("Missing required option(s): partition")
    if options.topic is None and options.partition is not None:
        raise CommandFailed("Option partition is only allowed if topic is used")


def _partitions(options: argparse.Namespace) -> list[TopicPartition] | None:
    """None means all partitions."""
    if options.path_to_json_file is not None:
        return parse_partitions(read_file(options.path_to_json_file))
    return None if options.topic is None else [TopicPartition(options.topic, options.partition)]


def parse_partitions(text: str) -> list[TopicPartition]:
    """The partitions in a file: {"partitions": [{"topic": "foo", "partition": 1}]}."""
    if not text:
        raise CommandFailed("Replica election data is empty")
    fields = json_fields.as_object(json_fields.parse(text))
    if "partitions" not in fields:
        raise CommandFailed('Replica election data is missing "partitions" field')
    partitions = []
    for entry in json_fields.as_array(fields["partitions"]):
        each = json_fields.as_object(entry)
        topic = json_fields.as_string(json_fields.field(each, "topic"))
        partitions.append(TopicPartition(topic, json_fields.as_integer(json_fields.field(each, "partition"))))
    if duplicates := [str(where) for where, count in sorted(Counter(partitions).items()) if count > 1]:
        raise CommandFailed(f"Replica election data contains duplicate partitions: [{', '.join(duplicates)}]")
    return partitions


def _elect(admin: Admin, election_type: ElectionType, partitions: Collection[TopicPartition] | None) -> None:
    try:
        results = elect_leaders(admin, election_type, partitions)
    except Refused as refused:
        sentences = {
            ErrorCode.REQUEST_TIMED_OUT: "Timeout waiting for election results",
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Not authorized to perform leader election",
        }
        if refused.code not in sentences:
            raise
        print(sentences[refused.code])
        raise CommandFailed(f"{sentences[refused.code]}: {exception_text(refused)}") from None
    for line in result_lines(election_type, results):
        print(line)
    if failed := sum(_has_failed(refused) for refused in results.values()):
        raise CommandFailed(f"{failed} replica(s) could not be elected")


def result_lines(election_type: ElectionType, results: Mapping[TopicPartition, Refused | None]) -> list[str]:
    """Lines for the elected partitions, those that needed no election, and those that failed."""
    elected, unneeded, failed = [], [], []
    for where in sorted(results):
        refused = results[where]
        if refused is None:
            elected.append(str(where))
        elif refused.code is ErrorCode.ELECTION_NOT_NEEDED:
            unneeded.append(str(where))
        else:
            failed.append(f"{where}: {exception_text(refused)}")
    kind = election_type.name
    lines = []
    if elected:
        lines.append(f"Successfully completed leader election ({kind}) for partitions {', '.join(elected)}")
    if unneeded:
        lines.append(f"Valid replica already elected for partitions {', '.join(unneeded)}")
    return lines + [f"Error completing leader election ({kind}) for partition: {each}" for each in failed]


def _has_failed(refused: Refused | None) -> bool:
    return refused is not None and refused.code is not ErrorCode.ELECTION_NOT_NEEDED


if __name__ == "__main__":
    sys.exit(main())
