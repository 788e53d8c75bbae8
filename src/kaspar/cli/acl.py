"""`kaspar acl`: lists, adds and removes ACLs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from kaspar.base.errors import Refused
from kaspar.cli.asking import confirm, yes_option
from kaspar.cli.command import Group
from kaspar.cli.completing import complete_topics
from kaspar.cli.failures import WrongUsage
from kaspar.cli.output import Column, Done, Row
from kaspar.cli.session import Session, common_options

if TYPE_CHECKING:
    from kaspar.acls.acl import Acl, AclFilter, AclOperation

_EXAMPLES: Final = """\
examples:
  kaspar acl add --principal alice --operation read,describe --topic orders --group billing
  kaspar acl add --principal app --operation all --topic app. --prefix       all topics that start with app.
  kaspar acl add --principal eve --operation all --topic '*' --deny
  kaspar acl list --principal alice
  kaspar acl remove --principal alice --topic orders

Operations: all, read, write, create, delete, alter, describe, cluster_action, describe_configs, alter_configs,
idempotent_write, create_tokens, describe_tokens, two_phase_commit.
"""
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Selection:
    """The options that name principals, resources and operations."""

    principals: Sequence[str]
    operations: Sequence[str]
    topics: Sequence[str]
    groups: Sequence[str]
    transactional_ids: Sequence[str]
    tokens: Sequence[str]
    cluster: bool
    prefix: bool
    host: str | None
    deny: bool

    def resources(self) -> list[tuple[str, str]]:
        """The kinds and names of the selected resources."""
        named = [("TOPIC", name) for name in self.topics] + [("GROUP", name) for name in self.groups]
        named += [("TRANSACTIONAL_ID", name) for name in self.transactional_ids]
        named += [("DELEGATION_TOKEN", name) for name in self.tokens]
        return named + ([("CLUSTER", "kafka-cluster")] if self.cluster else [])

    def parsed_operations(self) -> "list[AclOperation]":
        from kaspar.acls.acl import AclOperation

        found = []
        for word in ",".join(self.operations).replace("-", "_").upper().split(","):
            if word in ("UNKNOWN", "ANY") or (word and word not in AclOperation.__members__):
                raise WrongUsage(f"unknown operation {word.lower()}: 'kaspar acl --help' lists them")
            if word:
                found.append(AclOperation[word])
        return found


def _selection_options(function: Callable[..., R]) -> Callable[..., R]:
    several: dict[str, Any] = {"multiple": True, "metavar": "NAME"}
    for option in (
        click.option("--deny", is_flag=True, help="Deny instead of allow."),
        click.option("--host", metavar="ADDRESS", help="Client host (default for add: any)."),
        click.option("--prefix", is_flag=True, help="Treat the names as prefixes."),
        click.option("--cluster", is_flag=True, help="The cluster itself."),
        click.option("--delegation-token", "tokens", help="Delegation tokens.", **several),
        click.option("--transactional-id", "transactional_ids", help="A transactional id; may be repeated.", **several),
        click.option("--group", "groups", help="A group; may be repeated. '*' is every group.", **several),
        click.option(
            "--topic",
            "topics",
            help="A topic; may be repeated. '*' is every topic.",
            shell_complete=complete_topics,
            **several,
        ),
        click.option(
            "--operation", "operations", multiple=True, metavar="NAME,NAME", help="An operation; may be repeated."
        ),
        click.option(
            "--principal",
            "principals",
            multiple=True,
            metavar="NAME",
            callback=lambda context, parameter, names: [_principal(name) for name in names],
            help="A principal: alice or User:alice; may be repeated. '*' is everyone.",
        ),
    ):
        function = option(function)
    return function


def _principal(name: str) -> str:
    return name if ":" in name else f"User:{name}"


@click.group("acl", cls=Group, epilog=_EXAMPLES)
def command() -> None:
    """List, add and remove ACLs for topics, groups and the cluster."""


@command.command("list", epilog=_EXAMPLES)
@_selection_options
@common_options
def list_acls(session: Session, /, **given: Any) -> None:
    """List ACLs: all, or those that match the options."""
    from kaspar.client.admin.acls import describe_acls

    filters = _filters(Selection(**given))
    with session.admin() as admin:
        found = {acl for each in filters for acl in describe_acls(admin, each)}
    session.output.table(_COLUMNS, [_row(acl) for acl in sorted(found)], empty="No matching ACLs.")


@command.command("add", epilog=_EXAMPLES)
@_selection_options
@common_options
def add(session: Session, /, **given: Any) -> int:
    """Add ACLs: one for each principal, operation and resource."""
    from kaspar.acls.acl import Acl, AclPermissionType, PatternType, ResourceType
    from kaspar.client.admin.acls import create_acls

    selection = Selection(**given)
    operations = selection.parsed_operations()
    if not selection.principals or not operations or not selection.resources():
        raise WrongUsage("--principal, --operation and a resource (--topic, --group, --cluster ...) are required")
    permission = AclPermissionType.DENY if selection.deny else AclPermissionType.ALLOW
    acls = [
        Acl(
            ResourceType[kind],
            name,
            PatternType.PREFIXED if selection.prefix and kind != "CLUSTER" else PatternType.LITERAL,
            principal,
            selection.host or "*",
            operation,
            permission,
        )
        for principal in selection.principals
        for kind, name in selection.resources()
        for operation in operations
    ]
    with session.admin() as admin:
        results = create_acls(admin, acls)
    return session.output.results(
        [Done(_sentence(acl), _row(acl), "added", refused) for acl, refused in results.items()]
    )


@command.command("remove", epilog=_EXAMPLES)
@_selection_options
@yes_option
@common_options
def remove(session: Session, /, yes: bool, **given: Any) -> int:
    """Remove all ACLs that match the options."""
    from kaspar.client.admin.acls import delete_acls, describe_acls

    selection = Selection(**given)
    if not (selection.principals or selection.resources()):
        raise WrongUsage("a --principal or a resource (--topic, --group, --cluster ...) is required")
    filters = _filters(selection)
    with session.admin() as admin:
        found = {acl for each in filters for acl in describe_acls(admin, each)}
        if not found:
            session.output.table(_COLUMNS, [], empty="No matching ACLs.")
            return 0
        confirm("\n".join([*map(_sentence, sorted(found)), f"Remove these {len(found)} ACLs?"]), yes=yes)
        results = delete_acls(admin, filters)
    done: list[Done] = []
    for result in results:
        if isinstance(result, Refused):
            done.append(Done("ACLs", {}, problem=result))
        else:
            done += [Done(_sentence(acl), _row(acl), "removed") for acl in sorted(result)]
    return session.output.results(done)


_COLUMNS: Final = [
    Column("principal", "PRINCIPAL"),
    Column("host", "HOST"),
    Column("permission", "PERMISSION", alarms=lambda value: value == "deny"),
    Column("operation", "OPERATION"),
    Column("resource_type", "RESOURCE"),
    Column("resource_name", "NAME"),
    Column("pattern_type", "PATTERN"),
]


def _filters(selection: Selection) -> "list[AclFilter]":
    from kaspar.acls.acl import AclFilter, AclOperation, AclPermissionType, PatternType, ResourceType

    pattern = PatternType.PREFIXED if selection.prefix else PatternType.LITERAL
    resources: list[tuple[int, str | None, int]] = [
        (ResourceType[kind], name, PatternType.LITERAL if kind == "CLUSTER" else pattern)
        for kind, name in selection.resources()
    ]
    any_pattern = PatternType.PREFIXED if selection.prefix else PatternType.ANY
    principals: Sequence[str | None] = selection.principals or (None,)
    return [
        AclFilter(
            resource_type,
            name,
            pattern_type,
            principal,
            selection.host,
            operation,
            AclPermissionType.DENY if selection.deny else AclPermissionType.ANY,
        )
        for principal in principals
        for resource_type, name, pattern_type in resources or [(ResourceType.ANY, None, any_pattern)]
        for operation in selection.parsed_operations() or [AclOperation.ANY]
    ]


def _row(acl: "Acl") -> Row:
    return {
        "principal": acl.principal,
        "host": acl.host,
        "permission": acl.permission_type.name.lower(),
        "operation": acl.operation.name.lower(),
        "resource_type": acl.resource_type.name.lower(),
        "resource_name": acl.resource_name,
        "pattern_type": acl.pattern_type.name.lower(),
    }


def _sentence(acl: "Acl") -> str:
    row = _row(acl)
    prefix = "prefix " if row["pattern_type"] == "prefixed" else ""
    host = "" if acl.host == "*" else f" from {acl.host}"
    return (
        f"{row['permission']} {acl.principal}{host} to {row['operation']} {row['resource_type']} "
        f"{prefix}{acl.resource_name}"
    )
