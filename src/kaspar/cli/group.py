"""`kaspar group`: shows consumer groups and their lag; resets offsets."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from kaspar.base.errors import ErrorCode, Refused
from kaspar.cli.asking import confirm, with_progress, yes_option
from kaspar.cli.command import Group
from kaspar.cli.completing import complete_groups
from kaspar.cli.failures import NotFound
from kaspar.cli.group_seek import seek
from kaspar.cli.output import Column, Done, Row
from kaspar.cli.session import Session, common_options

if TYPE_CHECKING:
    from kaspar.client.admin.groups import GroupDescription
    from kaspar.client.admin.session import Admin

_EXAMPLES: Final = """\
examples:
  kaspar group list
  kaspar group describe billing
  kaspar group lag                                  of all groups
  kaspar group seek billing --to start --topic orders
  kaspar group delete billing
"""
_LAG_COLUMNS: Final = [
    Column("topic", "TOPIC"),
    Column("partition", "PARTITION"),
    Column("committed", "COMMITTED"),
    Column("end_offset", "END"),
    Column("lag", "LAG", alarms=bool),
    Column("member", "MEMBER"),
    Column("client_id", "CLIENT"),
    Column("host", "HOST"),
]
_NAMES: Final = click.argument("names", nargs=-1, required=True, metavar="GROUP...", shell_complete=complete_groups)


@click.group("group", cls=Group, epilog=_EXAMPLES)
def command() -> None:
    """List, describe, move and delete consumer groups."""


command.add_command(seek)


@command.command("list", epilog="Example: kaspar group list --state Empty --json")
@click.option("--state", "states", multiple=True, metavar="STATE", help="Only groups in this state: Stable, Empty ...")
@common_options
def list_groups(session: Session, states: Sequence[str]) -> None:
    """List the groups, with their types and states."""
    from kaspar.client.admin import groups

    with session.admin() as admin:
        found = groups.list_groups(admin, states=states)
    rows = [
        {"name": each.group_id, "type": each.type, "protocol": each.protocol_type, "state": each.state}
        for each in sorted(found, key=lambda each: each.group_id)
    ]
    columns = [
        Column("name", "GROUP"),
        Column("type", "TYPE"),
        Column("protocol", "PROTOCOL"),
        Column("state", "STATE"),
    ]
    session.output.table(columns, rows, empty="There are no groups.")


@command.command("describe", epilog=_EXAMPLES)
@_NAMES
@common_options
def describe(session: Session, names: Sequence[str]) -> None:
    """Show the state of groups, their members, and the lag of each partition."""
    with session.admin() as admin:
        records = [_record(admin, group) for group in existing_groups(admin, names)]
    if not session.output.is_text:
        session.output.value(records)
        return
    for number, record in enumerate(records):
        if number:
            print()
        _draw(session, record)


def existing_groups(admin: "Admin", names: Sequence[str]) -> "list[GroupDescription]":
    from kaspar.client.admin.groups import describe_consumer_groups

    wanted = list(dict.fromkeys(names))
    found = describe_consumer_groups(admin, wanted)
    groups = []
    for name in wanted:
        group = found[name]
        if isinstance(group, Refused):
            raise _missing(name) if group.code is ErrorCode.GROUP_ID_NOT_FOUND else group
        if group.state == "Dead":  # how brokers before 4.0 describe a group that does not exist
            raise _missing(name)
        groups.append(group)
    return groups


def _missing(name: str) -> NotFound:
    return NotFound(f"there is no group {name}: 'kaspar group list' lists the groups")


def _record(admin: "Admin", group: "GroupDescription") -> dict[str, object]:
    return {
        "name": group.group_id,
        "type": group.type,
        "state": group.state,
        "assignor": group.assignor,
        "coordinator": group.coordinator.broker_id,
        "members": [
            {
                "id": member.member_id,
                "instance_id": member.group_instance_id,
                "client_id": member.client_id,
                "host": member.host,
                "partitions": [str(where) for where in member.assignment],
            }
            for member in group.members
        ],
        "offsets": _offset_rows(admin, group),
    }


def _offset_rows(admin: "Admin", group: "GroupDescription") -> list[Row]:
    """Rows for the partitions that have a committed offset, or a member that reads them."""
    from kaspar.cli.group_lag import committed_of, end_offsets_of

    committed = committed_of(admin, group.group_id)
    owners = {where: member for member in group.members for where in member.assignment}
    where_all = sorted({*committed, *owners})
    ends = end_offsets_of(admin, where_all)
    rows: list[Row] = []
    for where in where_all:
        owner = owners.get(where)
        offset, end = committed.get(where), ends.get(where)
        rows.append(
            {
                "topic": where.topic,
                "partition": where.partition,
                "committed": offset,
                "end_offset": end,
                "lag": None if offset is None or end is None else max(0, end - offset),
                "member": None if owner is None else owner.member_id,
                "client_id": None if owner is None else owner.client_id,
                "host": None if owner is None else owner.host,
            }
        )
    return rows


def _draw(session: Session, record: dict[str, object]) -> None:
    members, offsets = record["members"], record["offsets"]
    assert isinstance(members, list)
    assert isinstance(offsets, list)
    session.output.heading(str(record["name"]))
    session.output.fields(
        [
            ("state", record["state"]),
            ("type", record["type"]),
            ("assignor", record["assignor"]),
            ("coordinator", f"broker {record['coordinator']}"),
            ("members", len(members)),
            ("lag", sum(row["lag"] or 0 for row in offsets)),
        ]
    )
    if offsets:
        print()
        session.output.text_table(_LAG_COLUMNS, offsets)


@command.command(
    "lag",
    epilog="""\
examples:
  kaspar group lag
  kaspar group lag billing --json | jq '.[].lag'
""",
)
@click.argument("names", nargs=-1, metavar="[GROUP]...", shell_complete=complete_groups)
@common_options
def lag(session: Session, names: Sequence[str]) -> None:
    """Show the lag of groups in records, by topic."""
    from kaspar.cli.group_lag import lag_rows
    from kaspar.client.admin.groups import list_consumer_groups

    with session.admin() as admin:
        if names:
            chosen = [group.group_id for group in existing_groups(admin, names)]
        else:
            chosen = sorted(group.group_id for group in list_consumer_groups(admin))
        rows = [row for name in with_progress(chosen, "Groups") for row in lag_rows(admin, name)]
    columns = [
        Column("group", "GROUP"),
        Column("topic", "TOPIC"),
        Column("partitions", "PARTITIONS"),
        Column("lag", "LAG", alarms=bool),
    ]
    session.output.table(columns, rows, empty="No group has committed offsets.")


@command.command("delete", epilog="Example: kaspar group delete billing --yes")
@_NAMES
@click.option("--if-exists", is_flag=True, help="Ignore groups that do not exist.")
@yes_option
@common_options
def delete(session: Session, names: Sequence[str], if_exists: bool, yes: bool) -> int:
    """Delete groups without members, and their committed offsets."""
    from kaspar.client.admin.groups import delete_groups

    wanted = list(dict.fromkeys(names))
    confirm(f"Delete the groups {', '.join(wanted)} and their offsets?", yes=yes)
    with session.admin() as admin:
        refusals = delete_groups(admin, wanted)
    results = []
    for name in wanted:
        refused = refusals[name]
        is_missing = refused is not None and refused.code is ErrorCode.GROUP_ID_NOT_FOUND
        if is_missing and if_exists:
            results.append(Done(f"group {name}", {"group": name}, "does not exist"))
        else:
            results.append(Done(f"group {name}", {"group": name}, "deleted", refused))
    return session.output.results(results)
