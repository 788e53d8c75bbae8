"""`kaspar group seek`: resets the offsets of a group."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import click

from kaspar.base.errors import KasparError
from kaspar.cli.asking import confirm, yes_option
from kaspar.cli.command import Command
from kaspar.cli.completing import complete_groups, complete_topics
from kaspar.cli.failures import NotFound, WrongUsage
from kaspar.cli.output import Column
from kaspar.cli.parameters import PARTITIONS
from kaspar.cli.positions import find_offsets
from kaspar.cli.session import Session, common_options
from kaspar.cli.topic_lookup import existing_topics, partitions_of

if TYPE_CHECKING:
    from kaspar.base.ids import TopicPartition
    from kaspar.client.admin.session import Admin

_EXAMPLES: Final = """\
examples:
  kaspar group seek billing --to start
  kaspar group seek billing --to end --topic orders
  kaspar group seek billing --to 1000 --topic orders --partitions 0
  kaspar group seek billing --to '2 hours ago' --dry-run
  kaspar group seek billing --by -100                     100 records back in each partition

The group must have no members. Without --topic, all partitions with a committed offset are moved.
"""


@click.command("seek", cls=Command, epilog=_EXAMPLES)
@click.argument("name", metavar="GROUP", shell_complete=complete_groups)
@click.option(
    "--to",
    "target",
    metavar="WHERE",
    help="start or earliest, end or latest, an offset, or a time such as '10 minutes ago'.",
)
@click.option("--by", type=int, metavar="N", help="Shift by N records; negative moves back.")
@click.option(
    "--topic",
    "topics",
    multiple=True,
    metavar="TOPIC",
    shell_complete=complete_topics,
    help="Only this topic, and all its partitions; may be repeated.",
)
@click.option("-p", "--partitions", metavar="N,N-M", type=PARTITIONS, help="With one --topic: only these partitions.")
@click.option("--dry-run", is_flag=True, help="Show the new offsets without changing them.")
@yes_option
@common_options
def seek(
    session: Session,
    name: str,
    target: str | None,
    by: int | None,
    topics: Sequence[str],
    partitions: Sequence[int] | None,
    dry_run: bool,
    yes: bool,
) -> int:
    """Move a group to other offsets."""
    from kaspar.cli.group_lag import committed_of

    if (target is None) is (by is None):
        raise WrongUsage("either --to WHERE or --by N is required")
    if partitions is not None and len(topics) != 1:
        raise WrongUsage("--partitions requires exactly one --topic")
    with session.admin() as admin:
        committed = committed_of(admin, name)
        where_all = _chosen(admin, topics, partitions) if topics else sorted(committed)
        if not where_all:
            raise NotFound(f"the group {name} has committed no offsets: name a --topic")
        new = _new_offsets(admin, where_all, committed, target, by)
        rows = [
            {"topic": where.topic, "partition": where.partition, "from": committed.get(where), "to": new[where]}
            for where in where_all
        ]
        if not dry_run:
            _refuse_members(admin, name)
            confirm(f"Move the group {name} in {len(rows)} partitions?", yes=yes)
            _alter(admin, name, new)
    columns = [Column("topic", "TOPIC"), Column("partition", "PARTITION"), Column("from", "FROM"), Column("to", "TO")]
    session.output.table(columns, rows)
    return 0


def _chosen(admin: "Admin", topics: Sequence[str], only: Sequence[int] | None) -> "list[TopicPartition]":
    return [where for topic in existing_topics(admin, topics) for where in partitions_of(topic, only)]


def _refuse_members(admin: "Admin", name: str) -> None:
    from kaspar.client.admin.group_members import describe_group_members

    if members := describe_group_members(admin, name):
        clients = ", ".join(sorted({member.client_id for member in members}))
        raise KasparError(f"the group {name} has members ({clients}): stop them first")


def _new_offsets(
    admin: "Admin",
    partitions: "Sequence[TopicPartition]",
    committed: "Mapping[TopicPartition, int]",
    target: str | None,
    by: int | None,
) -> "dict[TopicPartition, int]":
    """The new offsets, clamped to the partitions' start and end offsets."""
    start, end = find_offsets(admin, partitions, "start"), find_offsets(admin, partitions, "end")
    if target is not None:
        wanted = find_offsets(admin, partitions, target)
    else:
        wanted = {where: committed.get(where, start[where]) + (by or 0) for where in partitions}
    return {where: min(max(wanted[where], start[where]), end[where]) for where in partitions}


def _alter(admin: "Admin", name: str, offsets: "Mapping[TopicPartition, int]") -> None:
    from kaspar.client.admin.group_offsets import alter_group_offsets

    for where, refused in alter_group_offsets(admin, name, offsets).items():
        if refused is not None:
            raise KasparError(f"{where}: {refused.message}")
