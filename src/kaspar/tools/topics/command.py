"""The actions of kafka-topics."""

import argparse
import sys
from collections.abc import Sequence
from typing import Final

from kaspar.base.errors import ErrorCode, KasparError, Refused
from kaspar.client.admin.session import Admin, accepted, raise_first
from kaspar.tools.command_line import CommandFailed, open_admin, run
from kaspar.tools.kafka_errors import message_of
from kaspar.tools.topics.options import check_options, command_options
from kaspar.tools.topics.selection import expected_topics, matching_topics
from kaspar.tools.topics.values import new_configs, number, replica_assignment

__all__ = ["command_options", "main"]

_MAX_REPLICATION_FACTOR: Final = 32767


def main(argv: Sequence[str] | None = None) -> int:
    parser = command_options()
    options = parser.parse(argv)
    check_options(parser, options)
    try:
        admin = open_admin(options.bootstrap_server, options.command_config, client_id="kafka-topics")
    except CommandFailed as problem:
        print(problem, file=sys.stderr)
        return 1
    with admin:
        return run(lambda: _run(admin, options), _report)


def _report(problem: KasparError) -> None:
    print(f"Error while executing topic command : {message_of(problem)}")


def _run(admin: Admin, options: argparse.Namespace) -> None:
    if options.create:
        _create(admin, options)
    elif options.alter:
        _alter(admin, options)
    elif options.list:
        print("\n".join(matching_topics(admin, options)))
    elif options.delete:
        _delete(admin, options)
    else:
        from kaspar.tools.topics.describing import describe

        describe(admin, options)


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
    names = expected_topics(admin, options)
    if not assignment:
        raise_first(create_partitions(admin, dict.fromkeys(names, NewPartitions(total))).values())
        return
    added = {
        name: NewPartitions(total, assignment[len(accepted(topic).partitions) :])
        for name, topic in describe_topics(admin, names).items()
    }
    raise_first(create_partitions(admin, added).values())


def _delete(admin: Admin, options: argparse.Namespace) -> None:
    from kaspar.client.admin.deletion import delete_topics

    raise_first(delete_topics(admin, expected_topics(admin, options)).values())
