"""The options of kafka-topics, which of them go together, and its actions but for --describe."""

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kaspar.base.errors import ErrorCode, KasparError, Refused
from kaspar.client.admin.session import Admin
from kaspar.client.admin.topics import list_topics
from kaspar.tools.client_config import add_command_config
from kaspar.tools.command_line import CommandFailed, KafkaOptions, open_admin, run
from kaspar.tools.include_list import topic_pattern
from kaspar.tools.kafka_errors import message_of
from kaspar.tools.topics.values import new_configs, number, replica_assignment

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
"""Options that only some actions have."""
_MAX_REPLICATION_FACTOR: Final = 32767


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


def main(argv: Sequence[str] | None = None) -> int:
    parser = command_options()
    options = parser.parse(argv)
    _check(parser, options)
    try:
        admin = open_admin(options.bootstrap_server, options.command_config, client_id="kafka-topics")
    except CommandFailed as problem:
        print(problem, file=sys.stderr)
        return 1
    with admin:
        return run(lambda: _run(admin, options), _report)


def _report(problem: KasparError) -> None:
    sentence = message_of(problem) if isinstance(problem, Refused) else problem
    print(f"Error while executing topic command : {sentence}")


def _check(parser: KafkaOptions, options: argparse.Namespace) -> None:
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


def _run(admin: Admin, options: argparse.Namespace) -> None:
    if options.create:
        _create(admin, options)
    elif options.alter:
        _alter(admin, options)
    elif options.list:
        print("\n".join(_matching(admin, options)))
    elif options.delete:
        _delete(admin, options)
    else:
        from kaspar.tools.topics.describing import describe

        describe(admin, options)


def _matching(admin: Admin, options: argparse.Namespace) -> list[str]:
    """The names of all topics, or of those of --topic."""
    names = list_topics(admin, include_internal=not options.exclude_internal)
    if options.topic is None:
        return names
    pattern = topic_pattern(options.topic)
    return [name for name in names if pattern.fullmatch(name)]


def expected(admin: Admin, options: argparse.Namespace) -> list[str]:
    """As _matching, and fails if there are none unless --if-exists allows it."""
    names = _matching(admin, options)
    if not names and options.topic and not options.if_exists:
        raise CommandFailed(f"Topic '{options.topic}' does not exist as expected")
    return names


def _create(admin: Admin, options: argparse.Namespace) -> None:
    from kaspar.client.admin.creation import BROKERS_DEFAULT, NewTopic, create_topics

    partitions = number(options.partitions, "partitions")
    replication_factor = number(options.replication_factor, "replication-factor")
    assignment = replica_assignment(options.replica_assignment)
    configs = new_configs(options.config)
    if "." in options.topic or "_" in options.topic:
        print(
            "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could "
            "collide. To avoid issues it is best to use either, but not both."
        )
    if replication_factor is not None and not 1 <= replication_factor <= _MAX_REPLICATION_FACTOR:
        raise CommandFailed(f"The replication factor must be between 1 and {_MAX_REPLICATION_FACTOR} inclusive")
    if partitions is not None and partitions < 1:
        raise CommandFailed("The partitions must be greater than 0")
    if not options.topic:
        raise CommandFailed("The given topic name '' cannot be represented in a request.")
    new = NewTopic(
        options.topic,
        BROKERS_DEFAULT if partitions is None else partitions,
        BROKERS_DEFAULT if replication_factor is None else replication_factor,
        configs,
        assignment,
    )
    match create_topics(admin, [new])[new.name]:
        case Refused(code=ErrorCode.TOPIC_ALREADY_EXISTS) if options.if_not_exists:
            pass
        case Refused() as refused:
            raise refused
        case _:
            print(f"Created topic {new.name}.")


def _alter(admin: Admin, options: argparse.Namespace) -> None:
    from kaspar.client.admin.partitions import NewPartitions, create_partitions
    from kaspar.client.admin.topics import describe_topics

    total = number(options.partitions, "partitions")
    assert total is not None, "it was required"
    assignment = replica_assignment(options.replica_assignment)
    names = expected(admin, options)
    if not assignment:
        raise_first(create_partitions(admin, dict.fromkeys(names, NewPartitions(total))).values())
        return
    described = describe_topics(admin, names)
    raise_first(described.values())
    added = {
        name: NewPartitions(total, assignment[len(topic.partitions) :])
        for name, topic in described.items()
        if not isinstance(topic, Refused)
    }
    raise_first(create_partitions(admin, added).values())


def _delete(admin: Admin, options: argparse.Namespace) -> None:
    from kaspar.client.admin.deletion import delete_topics

    raise_first(delete_topics(admin, expected(admin, options)).values())


def raise_first(results: Iterable[object]) -> None:
    """A command that was refused for one topic ends with that; the others are done."""
    for result in results:
        if isinstance(result, Refused):
            raise result
