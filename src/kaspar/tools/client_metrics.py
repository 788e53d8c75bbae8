"""kafka-client-metrics: configures which clients push which of their metrics, and how often (KIP-714)."""

import argparse
import sys
from collections.abc import Sequence
from typing import Final

from kaspar.base.errors import KasparError
from kaspar.client.admin.config_resources import list_config_resources
from kaspar.client.admin.configs import (
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    ResourceType,
    describe_configs,
    incremental_alter_configs,
)
from kaspar.client.admin.session import Admin, accepted, raise_first
from kaspar.tools.client_config import add_command_config
from kaspar.tools.command_line import CommandFailed, KafkaOptions, open_admin, run
from kaspar.tools.java_numbers import parse_int
from kaspar.tools.kafka_errors import message_of

TIMEOUT_S: Final = 30.0
_ACTIONS: Final = ("alter", "delete", "describe", "list")
_SETTINGS: Final = ("generate-name", "interval", "match", "metrics")


def command_options() -> KafkaOptions:
    options = KafkaOptions(
        "kafka-client-metrics",
        "Manage subscriptions of client metrics: brokers ask the clients that a subscription matches to push metrics.",
        example="kafka-client-metrics --bootstrap-server localhost:9092 --alter --name slow-producers "
        "--metrics org.apache.kafka.producer. --interval 30000 --match client_id=orders-.*",
    )
    options.add_argument("--bootstrap-server", metavar="HOST:PORT", help="brokers to connect to. REQUIRED")
    add_command_config(options)
    options.add_argument("--list", action="store_true", help="list the names of the subscriptions")
    options.add_argument("--describe", action="store_true", help="show the subscription --name, or all")
    options.add_argument("--alter", action="store_true", help="create a subscription, or change it")
    options.add_argument("--delete", action="store_true", help="delete the subscription --name")
    options.add_argument("--name", help="the name of a subscription")
    options.add_argument("--generate-name", action="store_true", help="with --alter: use a random name")
    options.add_argument(
        "--interval",
        metavar="MS",
        help="with --alter: how often clients push, in milliseconds; an empty value sets the default again",
    )
    options.add_argument(
        "--metrics",
        action="append",
        metavar="M1,M2",
        help="with --alter: prefixes of the names of the metrics; an empty value deletes them, '*' stands for all",
    )
    options.add_argument(
        "--match",
        action="append",
        metavar="K1=V1,K2=V2",
        help="with --alter: which clients, by regular expressions that all have to match: client_id, "
        "client_instance_id, client_software_name, client_software_version, client_source_address, "
        "client_source_port; an empty value stands for all clients",
    )
    return options


def main(argv: Sequence[str] | None = None) -> int:
    parser = command_options()
    options = parser.parse(argv)
    try:
        _check(parser, options)
    except CommandFailed as problem:
        print(problem, file=sys.stderr)
        return 1
    return run(lambda: _run(options), _report)


def _report(problem: KasparError) -> None:
    print(f"Error while executing client metrics command : {message_of(problem)}")


def _check(parser: KafkaOptions, options: argparse.Namespace) -> None:
    if sum(getattr(options, action) for action in _ACTIONS) != 1:
        parser.fail("Command must include exactly one action: --alter, --delete, --describe or --list.")
    if options.bootstrap_server is None:
        raise CommandFailed("--bootstrap-server must be specified.")
    parser.exclude(options, "delete", _SETTINGS)
    parser.exclude(options, "describe", _SETTINGS)
    parser.exclude(options, "list", ("name", *_SETTINGS))
    if options.alter and (options.name is None) is not options.generate_name:
        raise CommandFailed("One of --name or --generate-name must be specified with --alter.")
    if options.interval and not _is_integer(options.interval):
        raise CommandFailed("Invalid interval value. Enter an integer, or leave empty to reset.")
    if options.delete and options.name is None:
        raise CommandFailed("A client metrics resource name must be specified with --delete.")


def _is_integer(text: str) -> bool:
    try:
        parse_int(text)
    except ValueError:
        return False
    return True


def _run(options: argparse.Namespace) -> None:
    with open_admin(
        options.bootstrap_server,
        options.command_config,
        client_id="kafka-client-metrics",
        api_timeout_s=TIMEOUT_S,
    ) as admin:
        if options.alter:
            _alter(admin, options)
        elif options.delete:
            _delete(admin, options.name)
        elif options.describe:
            _describe(admin, options.name)
        else:
            print("\n".join(_names(admin)))


def _alter(admin: Admin, options: argparse.Namespace) -> None:
    name = _random_name() if options.generate_name else options.name
    settings = {
        "interval.ms": options.interval,
        "metrics": None if options.metrics is None else ",".join(options.metrics),
        "match": None if options.match is None else ",".join(options.match),
    }
    _change(
        admin,
        name,
        [
            ConfigChange(setting, ConfigOperation.SET if value else ConfigOperation.DELETE, value)
            for setting, value in settings.items()
            if value is not None
        ],
    )
    print(f"Altered client metrics config for {name}.")


def _random_name() -> str:
    from kaspar.base.ids import random_uuid, uuid_to_text

    return uuid_to_text(random_uuid())


def _delete(admin: Admin, name: str) -> None:
    """Deletes all settings, because a subscription without settings does not exist."""
    _change(admin, name, [ConfigChange(setting, ConfigOperation.DELETE) for setting in _settings(admin, name)])
    print(f"Deleted client metrics config for {name}.")


def _change(admin: Admin, name: str, changes: Sequence[ConfigChange]) -> None:
    subscription = ConfigResource(ResourceType.CLIENT_METRICS, name)
    raise_first(incremental_alter_configs(admin, {subscription: changes}).values())


def _describe(admin: Admin, name: str | None) -> None:
    names = _names(admin)
    if name is not None and name not in names:
        print(f"The client metric resource {name} doesn't exist and doesn't have dynamic config.")
        return
    for each in names if name is None else [name]:
        print(f"Client metrics configs for {each} are:")
        for setting, value in sorted(_settings(admin, each).items()):
            print(f"  {setting}={value}")


def _settings(admin: Admin, name: str) -> dict[str, str | None]:
    subscription = ConfigResource(ResourceType.CLIENT_METRICS, name)
    found = accepted(describe_configs(admin, [subscription])[subscription])
    return {entry.name: entry.value for entry in found.values()}


def _names(admin: Admin) -> list[str]:
    return sorted(each.name for each in list_config_resources(admin, [ResourceType.CLIENT_METRICS]))


if __name__ == "__main__":
    sys.exit(main())
