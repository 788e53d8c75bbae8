"""`kaspar quota`: manages quotas of users, clients and IP addresses."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

import click

from kaspar.cli.command import Group
from kaspar.cli.failures import WrongUsage
from kaspar.cli.output import Column, Done
from kaspar.cli.session import Session, common_options, pairs

if TYPE_CHECKING:
    from kaspar.quotas.entities import QuotaEntity

_EXAMPLES: Final = """\
examples:
  kaspar quota list
  kaspar quota set --user alice producer_byte_rate=1048576 consumer_byte_rate=2097152
  kaspar quota set --client-id batch --default-user request_percentage=50
  kaspar quota set --ip 192.0.2.7 connection_creation_rate=10
  kaspar quota unset --user alice producer_byte_rate

Names: producer_byte_rate and consumer_byte_rate (bytes per second), request_percentage (of a thread),
controller_mutation_rate (partitions per second), connection_creation_rate (per second, only for addresses).
"""
R = TypeVar("R")


def _entity_options(function: Callable[..., R]) -> Callable[..., R]:
    for option in (
        click.option("--default-ip", is_flag=True, help="Addresses that have no quota of their own."),
        click.option("--ip", metavar="ADDRESS", help="An address."),
        click.option("--default-client-id", is_flag=True, help="Client ids that have no quota of their own."),
        click.option("--client-id", metavar="ID", help="A client id."),
        click.option("--default-user", is_flag=True, help="Users who have no quota of their own."),
        click.option("--user", metavar="NAME", help="A user."),
    ):
        function = option(function)
    return function


@click.group("quota", cls=Group, epilog=_EXAMPLES)
def command() -> None:
    """Show and change quotas of users, clients and IP addresses."""


@command.command("list", epilog="Example: kaspar quota list --json")
@common_options
def list_quotas(session: Session) -> None:
    """List all quotas."""
    from kaspar.client.admin.quotas import describe_client_quotas

    with session.admin() as admin:
        found = describe_client_quotas(admin, [])
    rows = [
        {"entity": dict(entity.parts()), "who": _who(entity), "quota": name, "value": value}
        for entity, quotas in found.items()
        for name, value in sorted(quotas.items())
    ]
    rows.sort(key=lambda row: str(row["who"]))
    columns = [Column("who", "WHO"), Column("quota", "QUOTA"), Column("value", "VALUE", lambda value: f"{value:g}")]
    session.output.table(columns, rows, empty="There are no quotas.")


@command.command("set", epilog=_EXAMPLES)
@_entity_options
@click.argument("settings_given", nargs=-1, required=True, metavar="NAME=VALUE...")
@common_options
def set_quotas(session: Session, /, settings_given: Sequence[str], **entity: "str | bool | None") -> int:
    """Set quotas of a user, a client id, both together, or an address."""
    try:
        values: dict[str, float | None] = {name: float(each) for name, each in pairs(settings_given, "quota").items()}
    except ValueError:
        raise WrongUsage("the value of a quota must be a number") from None
    return _alter(session, _entity(**entity), values, "set")


@command.command("unset", epilog=_EXAMPLES)
@_entity_options
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@common_options
def unset(session: Session, /, names: Sequence[str], **entity: "str | bool | None") -> int:
    """Remove quotas."""
    return _alter(session, _entity(**entity), dict.fromkeys(names), "removed")


def _alter(session: Session, entity: "QuotaEntity", values: "dict[str, float | None]", sentence: str) -> int:
    from kaspar.client.admin.quotas import alter_client_quotas

    with session.admin() as admin:
        refused = alter_client_quotas(admin, {entity: values})
    keys = {"entity": dict(entity.parts()), "who": _who(entity)}
    return session.output.results([Done(f"quotas of {_who(entity)}", keys, sentence, refused.get(entity))])


def _entity(**given: "str | bool | None") -> "QuotaEntity":
    from kaspar.quotas.entities import DEFAULT, QuotaEntity

    parts: dict[str, str | None] = {}
    for name in ("user", "client_id", "ip"):
        is_default = given[f"default_{name}"]
        value = given[name]
        if is_default and value is not None:
            raise WrongUsage(f"--{name.replace('_', '-')} and --default-{name.replace('_', '-')} exclude each other")
        parts[name] = DEFAULT if is_default else value if isinstance(value, str) else None
    if all(part is None for part in parts.values()):
        raise WrongUsage("--user, --client-id or --ip is required")
    if parts["ip"] is not None and (parts["user"] is not None or parts["client_id"] is not None):
        raise WrongUsage("--ip cannot be combined with --user or --client-id")
    return QuotaEntity(parts["user"], parts["client_id"], parts["ip"])


def _who(entity: "QuotaEntity") -> str:
    return ",".join(f"{kind}={'(default)' if name is None else name}" for kind, name in entity.parts())
