"""The options of kafka-topics, and which of them can be combined."""

import argparse
import sys
from collections.abc import Mapping
from typing import Final

from kaspar.tools.client_config import add_command_config
from kaspar.tools.command_line import KafkaOptions

_ACTIONS: Final = ("list", "describe", "create", "alter", "delete")
_FILTERS: Final = (
    "under-replicated-partitions",
    "under-min-isr-partitions",
    "at-min-isr-partitions",
    "unavailable-partitions",
)
_ACTIONS_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "config": ("alter", "create"),
    "partitions": ("alter", "create"),
    "replication-factor": ("create",),
    "replica-assignment": ("alter", "create"),
    **dict.fromkeys(_FILTERS, ("describe",)),
    "topics-with-overrides": ("describe",),
    "if-exists": ("alter", "delete", "describe"),
    "if-not-exists": ("create",),
    "exclude-internal": ("list", "describe"),
}
"""Options that are limited to some actions."""


def command_options() -> KafkaOptions:
    options = KafkaOptions(
        "kafka-topics",
        "Create, list, describe, alter or delete topics.",
        example="kafka-topics --bootstrap-server localhost:9092 --create --topic orders --partitions 6 "
        "--config retention.ms=86400000",
    )
    actions = options.add_argument_group("actions, of which exactly one is given")
    actions.add_argument("--list", action="store_true", help="print the names of all topics, or of those of --topic")
    actions.add_argument(
        "--describe",
        action="store_true",
        help="print partitions, replicas and changed settings of all topics, or of those of --topic",
    )
    actions.add_argument("--create", action="store_true", help="create the topic of --topic")
    actions.add_argument(
        "--alter", action="store_true", help="add partitions to topics; their settings are changed by kafka-configs"
    )
    actions.add_argument("--delete", action="store_true", help="delete topics and all their records")
    options.add_argument("--bootstrap-server", metavar="HOST:PORT", help="brokers to connect to. REQUIRED")
    add_command_config(options)
    options.add_argument(
        "--topic",
        help="the topic; all actions but --create also take a regular expression for whole names, or several of them "
        "with commas between",
    )
    _add_creation_options(options)
    _add_description_options(options)
    options.add_argument(
        "--if-exists", action="store_true", help="do nothing where --topic matches no topic, rather than fail"
    )
    options.add_argument(
        "--if-not-exists",
        action="store_true",
        help="with --create: do nothing where the topic exists, rather than fail",
    )
    options.add_argument(
        "--exclude-internal", action="store_true", help="leave out internal topics such as __consumer_offsets"
    )
    return options


def _add_creation_options(options: KafkaOptions) -> None:
    options.add_argument(
        "--partitions",
        metavar="NUMBER",
        help="how many partitions the topic has after --create (default: the brokers' num.partitions) or --alter. With "
        "more partitions, records of a key are written to another partition than before",
    )
    options.add_argument(
        "--replication-factor",
        metavar="NUMBER",
        help="on how many brokers each partition is stored (default: the brokers' default.replication.factor)",
    )
    options.add_argument(
        "--replica-assignment",
        metavar="IDS",
        help="the brokers of each partition instead, such as 1:2,2:3 for two partitions: the first of each leads it. "
        "With --alter, those of all partitions, the present ones first",
    )
    options.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of the new topic, such as cleanup.policy=compact; may be repeated",
    )
    options.add_argument(
        "--delete-config",
        action="append",
        default=[],
        metavar="NAME",
        help="deprecated, without effect: kafka-configs deletes settings",
    )


def _add_description_options(options: KafkaOptions) -> None:
    options.add_argument("--topic-id", metavar="ID", help="with --describe: the topic with this id")
    options.add_argument(
        "--under-replicated-partitions",
        action="store_true",
        help="with --describe: only partitions with a replica that is not in sync",
    )
    options.add_argument(
        "--under-min-isr-partitions",
        action="store_true",
        help="with --describe: only partitions with fewer replicas in sync than min.insync.replicas, which refuse "
        "records of producers with acks=all",
    )
    options.add_argument(
        "--at-min-isr-partitions",
        action="store_true",
        help="with --describe: only partitions that would refuse records if one more replica fell behind",
    )
    options.add_argument(
        "--unavailable-partitions", action="store_true", help="with --describe: only partitions without a live leader"
    )
    options.add_argument(
        "--topics-with-overrides",
        action="store_true",
        help="with --describe: only topics with changed settings, without their partitions",
    )
    options.add_argument(
        "--partition-size-limit-per-response",
        metavar="NUMBER",
        help="with --describe: how many partitions one response of a broker has at most (default: 2000)",
    )


def check_options(parser: KafkaOptions, options: argparse.Namespace) -> None:
    if sum(getattr(options, action) for action in _ACTIONS) != 1:
        parser.fail("Command must include exactly one action: --list, --describe, --create, --alter or --delete")
    if options.delete_config:
        print(
            "delete-config option is no longer supported and deprecated since version 4.0. The config will be fully "
            "removed in future releases.",
            file=sys.stderr,
        )
    if options.bootstrap_server is None:
        parser.fail("--bootstrap-server must be specified")
    if options.describe and options.if_exists:
        if options.topic is None and options.topic_id is None:
            parser.fail("--topic or --topic-id is required to describe a topic")
        if options.topic is not None and options.topic_id is not None:
            print(
                "Only topic id will be used when both --topic and --topic-id are specified and topicId is not "
                "Uuid.ZERO_UUID"
            )
    if not options.list and not options.describe:
        parser.require(options, "topic")
    if options.alter:
        if options.config:
            parser.fail(
                'Option combination "[[bootstrap-server], [config]]" can\'t be used with option "[alter]" (To alter '
                "topic configurations, the kafka-configs tool can be used.)"
            )
        parser.require(options, "partitions")
    for name, actions in _ACTIONS_OF.items():
        parser.exclude(options, name, (action for action in _ACTIONS if action not in actions))
    if options.create:
        parser.exclude(options, "replica-assignment", ("partitions", "replication-factor"))
    for name in _FILTERS:
        parser.exclude(options, name, ("topics-with-overrides",))
