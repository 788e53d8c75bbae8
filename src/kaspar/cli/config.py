"""`kaspar config`: the settings of topics, brokers, groups, client-metrics subscriptions and loggers.

A resource is written as KIND/NAME: topic/orders, broker/1, group/billing. `broker` without a name stands for the
settings that all brokers share.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from kaspar.base.errors import Refused
from kaspar.cli.command import Group
from kaspar.cli.failures import NotFound, WrongUsage
from kaspar.cli.output import Column, Done
from kaspar.cli.session import Session, common_options, pairs

if TYPE_CHECKING:
    from kaspar.client.admin.configs import ConfigChange, ConfigEntry, ConfigResource
    from kaspar.client.admin.session import Admin

_EXAMPLES: Final = """\
examples:
  kaspar config list                                     resources that have settings
  kaspar config list topic/orders                        all settings of a topic
  kaspar config get topic/orders retention.ms            one value, for scripts
  kaspar config set topic/orders retention.ms=3600000 cleanup.policy=compact
  kaspar config set broker log.cleaner.threads=2         of all brokers
  kaspar config unset broker/1 log.cleaner.threads

RESOURCE is topic/NAME, broker/ID, broker (all brokers), group/NAME, client-metrics/NAME or logger/BROKER-ID.
"""
_KINDS: Final = {
    "topic": "TOPIC",
    "broker": "BROKER",
    "group": "GROUP",
    "client-metrics": "CLIENT_METRICS",
    "logger": "BROKER_LOGGER",
}


@click.group("config", cls=Group, epilog=_EXAMPLES)
def command() -> None:
    """Show and change the settings of topics, brokers, groups, client metrics and loggers."""


def _complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    from kaspar.cli.completing import complete_brokers, complete_topics

    kind, slash, name = incomplete.partition("/")
    if not slash:
        return [f"{each}/" for each in _KINDS if each.startswith(incomplete)]
    names_of = {"topic": complete_topics, "broker": complete_brokers, "logger": complete_brokers}.get(kind)
    return [] if names_of is None else [f"{kind}/{each}" for each in names_of(context, parameter, name)]


_RESOURCE: Final = click.argument("resource", metavar="RESOURCE", shell_complete=_complete)


@command.command("list", epilog=_EXAMPLES)
@click.argument("resource", required=False, metavar="[RESOURCE]", shell_complete=_complete)
@click.option("--changed", is_flag=True, help="Only non-default settings.")
@common_options
def list_configs(session: Session, resource: str | None, changed: bool) -> None:
    """List all settings of RESOURCE; without one, the topics, brokers and others that have settings."""
    if resource is None:
        _list_resources(session)
        return
    from kaspar.client.admin.configs import ConfigSource

    with session.admin() as admin:
        entries = _entries(admin, parse_resource(resource), resource)
    rows = [
        {
            "name": entry.name,
            "value": entry.value,
            "source": entry.source.name,
            "sensitive": entry.is_sensitive,
            "read_only": entry.is_read_only,
        }
        for entry in entries.values()
        if not changed or entry.source is not ConfigSource.DEFAULT_CONFIG
    ]
    columns = [Column("name", "SETTING"), Column("value", "VALUE"), Column("source", "SOURCE")]
    session.output.table(columns, rows, empty=f"{resource} has no non-default settings.")


def _list_resources(session: Session) -> None:
    from kaspar.client.admin.config_resources import list_config_resources
    from kaspar.client.admin.configs import ResourceType

    names = {ResourceType[name]: kind for kind, name in _KINDS.items()}
    with session.admin() as admin:
        found = list_config_resources(admin)
    rows = [{"kind": names[each.type], "name": each.name} for each in found if each.type in names]
    rows.sort(key=lambda row: (row["kind"], row["name"]))
    columns = [Column("kind", "KIND"), Column("name", "NAME")]
    session.output.table(columns, rows, empty="No resource has settings.")


@command.command("get", epilog=_EXAMPLES)
@_RESOURCE
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@common_options
def get(session: Session, resource: str, names: Sequence[str]) -> None:
    """Print the values of settings: one per line, or by name with --json and --yaml."""
    with session.admin() as admin:
        entries = _entries(admin, parse_resource(resource), resource)
    for name in names:
        if name not in entries:
            raise NotFound(f"{resource} has no setting {name}: 'kaspar config list {resource}' lists them all")
    if not session.output.is_text:
        session.output.value({name: entries[name].value for name in names})
        return
    for name in names:
        print("(sensitive)" if entries[name].is_sensitive else entries[name].value or "")


@command.command("set", epilog=_EXAMPLES)
@_RESOURCE
@click.argument("pairs_given", nargs=-1, required=True, metavar="NAME=VALUE...")
@click.option("--append", is_flag=True, help="Append the values to list settings instead of replacing them.")
@click.option("--dry-run", is_flag=True, help="Only validate the change.")
@common_options
def set_configs(session: Session, resource: str, pairs_given: Sequence[str], append: bool, dry_run: bool) -> int:
    """Change settings."""
    from kaspar.client.admin.configs import ConfigChange, ConfigOperation

    operation = ConfigOperation.APPEND if append else ConfigOperation.SET
    changes = [ConfigChange(name, operation, value) for name, value in pairs(pairs_given, "setting").items()]
    return _alter(session, resource, changes, "would be changed" if dry_run else "changed", dry_run=dry_run)


@command.command("unset", epilog=_EXAMPLES)
@_RESOURCE
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@common_options
def unset(session: Session, resource: str, names: Sequence[str]) -> int:
    """Reset settings to their defaults."""
    from kaspar.client.admin.configs import ConfigChange, ConfigOperation

    changes = [ConfigChange(name, ConfigOperation.DELETE) for name in names]
    return _alter(session, resource, changes, "changed", dry_run=False)


def _alter(session: Session, resource: str, changes: "list[ConfigChange]", sentence: str, *, dry_run: bool) -> int:
    from kaspar.client.admin.configs import incremental_alter_configs

    which = parse_resource(resource)
    with session.admin() as admin:
        _check_broker(admin, which)
        refused = incremental_alter_configs(admin, {which: changes}, validate_only=dry_run)
    return session.output.results([Done(resource, {"resource": resource}, sentence, refused.get(which))])


def _entries(admin: "Admin", which: "ConfigResource", text: str) -> "dict[str, ConfigEntry]":
    from kaspar.cli.failures import NOT_FOUND, explain
    from kaspar.client.admin.configs import describe_configs

    _check_broker(admin, which)
    found = describe_configs(admin, [which])[which]
    if isinstance(found, Refused):
        failure = explain(found, text)
        raise NotFound(failure.sentence) if failure.exit_code == NOT_FOUND else found
    return found


def _check_broker(admin: "Admin", which: "ConfigResource") -> None:
    """Raise an error if the broker does not exist: its settings are read from the broker itself, so the call would wait
    until its timeout."""
    from kaspar.client.admin.cluster import describe_cluster
    from kaspar.client.admin.configs import ResourceType

    if which.type not in (ResourceType.BROKER, ResourceType.BROKER_LOGGER) or not which.name:
        return
    there = [str(node.node_id) for node in describe_cluster(admin).nodes]
    if which.name not in there:
        raise NotFound(f"there is no broker {which.name} (brokers: {', '.join(there)})")


def parse_resource(text: str) -> "ConfigResource":
    from kaspar.client.admin.configs import ConfigResource, ResourceType

    kind, slash, name = text.partition("/")
    kind = kind.removesuffix("s") if kind.removesuffix("s") in _KINDS else kind
    if kind not in _KINDS:
        raise WrongUsage(f"{text} is not a resource: write KIND/NAME, where KIND is {', '.join(_KINDS)}")
    if kind != "broker" and not name:
        raise WrongUsage(f"which {kind}? write {kind}/NAME")
    if kind in ("broker", "logger") and slash and not name.isdecimal():
        raise WrongUsage(f"{text}: a broker is named by its id, as in {kind}/1")
    return ConfigResource(ResourceType[_KINDS[kind]], name)
