"""kafka-configs: describes and alters the settings of topics, brokers, groups and others, quotas, and SCRAM users."""

import argparse
import sys
from collections.abc import Sequence
from typing import Final

from kaspar.base.errors import KasparError, Refused
from kaspar.client.admin.session import Admin
from kaspar.tools.client_config import add_brokers_or_controllers, add_command_config
from kaspar.tools.command_line import CommandFailed, KafkaOptions, command_words, open_admin, run
from kaspar.tools.configs.changes import parse_added, parse_deleted, read_added
from kaspar.tools.configs.entities import (
    BROKER_LOGGERS,
    DEFAULT_NAME,
    IPS,
    TYPES,
    Entities,
    entities_of,
)
from kaspar.tools.configs.resources import RESOURCE_TYPES, alter_resource, describe_resources
from kaspar.tools.kafka_errors import exception_text

TIMEOUT_S: Final = 30.0
"""The timeout of a call, as in Kafka's command."""


def command_options() -> KafkaOptions:
    options = KafkaOptions(
        "kafka-configs",
        "Describe and alter the settings of a topic, broker, group or client-metrics subscription, the quotas of a "
        "user, client or IP address, and the SCRAM credentials of a user.",
        example="kafka-configs --bootstrap-server localhost:9092 --alter --topic orders "
        "--add-config retention.ms=3600000,cleanup.policy=[compact,delete]",
    )
    add_brokers_or_controllers(options)
    add_command_config(options)
    options.add_argument("--describe", action="store_true", help="show the settings that were given to the entity")
    options.add_argument("--all", action="store_true", help="with --describe: show defaults and static settings too")
    options.add_argument("--alter", action="store_true", help="change settings of the entity")
    _add_changes(options)
    _add_entities(options)
    return options


def _add_changes(options: KafkaOptions) -> None:
    options.add_argument(
        "--add-config",
        metavar="K1=V1,K2=[V2,V3]",
        help="with --alter: settings to add or replace; values with commas are in square brackets. Quotas: "
        "producer_byte_rate, consumer_byte_rate, request_percentage and controller_mutation_rate of users and clients, "
        "connection_creation_rate of ips. Credentials of users: SCRAM-SHA-256=[iterations=8192,password=secret]",
    )
    options.add_argument(
        "--add-config-file", metavar="FILE", help="with --alter: a properties file with the settings to add"
    )
    options.add_argument(
        "--delete-config",
        action="append",
        metavar="K1,K2",
        help="with --alter: settings to delete, so that their defaults apply again",
    )


def _add_entities(options: KafkaOptions) -> None:
    options.add_argument(
        "--entity-type",
        action="append",
        metavar="TYPE",
        help=f"the type of the entity: {', '.join(TYPES)}. The types users and clients can be given together, for the "
        "quotas of a user's clients. The options below are short forms of a type with a name",
    )
    options.add_argument(
        "--entity-name",
        action="append",
        metavar="NAME",
        help="the name of the entity: a topic, a client id, a user, a broker id, an IP address, a group; --describe "
        "without it shows all entities of the type",
    )
    options.add_argument(
        "--entity-default",
        action="append_const",
        dest="entity_name",
        const=None,
        help="instead of a name: the default of all users, clients, brokers or ips",
    )
    options.add_argument("--topic", help="the name of a topic")
    options.add_argument("--client", metavar="ID", help="a client id")
    options.add_argument("--client-defaults", action="store_true", help="the default of all clients")
    options.add_argument("--user", help="the name of a user's principal")
    options.add_argument("--user-defaults", action="store_true", help="the default of all users")
    options.add_argument("--broker", metavar="ID", help="the id of a broker")
    options.add_argument("--broker-defaults", action="store_true", help="the default of all brokers")
    options.add_argument("--broker-logger", metavar="ID", help="the id of a broker, for the levels of its log")
    options.add_argument("--ip", help="an IP address")
    options.add_argument("--ip-defaults", action="store_true", help="the default of all IP addresses")
    options.add_argument("--group", metavar="ID", help="the id of a group")
    options.add_argument("--client-metrics", metavar="NAME", help="the name of a client-metrics subscription")


def main(argv: Sequence[str] | None = None) -> int:
    parser = command_options()
    options = parser.parse(argv)
    words = command_words(argv)
    return run(lambda: _run(parser, options), lambda problem: _report(problem, words))


def _report(problem: KasparError, words: Sequence[str]) -> None:
    if isinstance(problem, Refused):
        print(f"Error while executing config command with args '{' '.join(words)}'", file=sys.stderr)
        print(exception_text(problem), file=sys.stderr)
    else:
        print(problem, file=sys.stderr)


def _run(parser: KafkaOptions, options: argparse.Namespace) -> None:
    if options.describe == options.alter:
        parser.fail("Command must include exactly one action: --describe, --alter")
    parser.exclude(options, "describe", ("add-config", "delete-config"))
    entities = entities_of(options)
    if options.describe:
        _check_describe(options, entities)
    else:
        _check_alter(options, entities)
    with open_admin(
        options.bootstrap_server or options.bootstrap_controller,
        options.command_config,
        client_id="kafka-configs",
        api_timeout_s=TIMEOUT_S,
        via_controllers=options.bootstrap_controller is not None,
    ) as admin:
        if options.describe:
            _describe(admin, entities, describe_all=options.all)
        else:
            _alter(admin, entities, options)


def _check_describe(options: argparse.Namespace, entities: Entities) -> None:
    if None in (options.entity_name or ()) and not entities.has_defaults:
        raise CommandFailed(f"--entity-default must not be specified with --describe of {','.join(entities.types)}")
    if entities.type == BROKER_LOGGERS and not any(entities.names):
        raise CommandFailed(f"An entity name must be specified with --describe of {entities.type}")


def _check_alter(options: argparse.Namespace, entities: Entities) -> None:
    if entities.has_defaults:
        if not entities.names:
            raise CommandFailed(
                "An entity-name or default entity must be specified with --alter of users, clients, brokers or ips"
            )
    elif not any(entities.names):
        raise CommandFailed(f"An entity name must be specified with --alter of {','.join(entities.types)}")
    if options.add_config is not None and options.add_config_file is not None:
        raise CommandFailed("Only one of --add-config or --add-config-file must be specified")
    if options.add_config is None and options.add_config_file is None and options.delete_config is None:
        raise CommandFailed(
            "At least one of --add-config, --add-config-file, or --delete-config must be specified with --alter"
        )
    if len(entities.types) != len(entities.names):
        raise CommandFailed("An entity name must be specified for every entity type")


def _describe(admin: Admin, entities: Entities, *, describe_all: bool) -> None:
    if entities.type in RESOURCE_TYPES:
        describe_resources(admin, entities.type, entities.name, describe_all=describe_all)
    else:
        from kaspar.tools.configs.users import describe_users  # imported here because most calls are about topics

        describe_users(admin, entities)


def _alter(admin: Admin, entities: Entities, options: argparse.Namespace) -> None:
    name = entities.names[0]
    added: dict[str, str] = {}
    if options.add_config is not None:
        added = parse_added(options.add_config)
    elif options.add_config_file is not None:
        added = read_added(options.add_config_file)
    deleted = parse_deleted(options.delete_config or ())
    if entities.type in RESOURCE_TYPES:
        alter_resource(admin, entities.type, name, added, deleted)
    else:
        from kaspar.tools.configs.users import alter_ips, alter_users

        alter = alter_ips if entities.type == IPS else alter_users
        alter(admin, entities, added, deleted)
    if name == DEFAULT_NAME:
        print(f"Completed updating default config for {entities.type} in the cluster.")
    else:
        print(f"Completed updating config for {entities.type[:-1]} {name}.")


if __name__ == "__main__":
    sys.exit(main())
