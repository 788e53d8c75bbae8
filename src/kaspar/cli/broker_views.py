"""The commands of `kaspar broker` that show the brokers of a running cluster."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from kaspar.base.errors import Refused
from kaspar.cli.command import Command
from kaspar.cli.completing import complete_brokers
from kaspar.cli.failures import NotFound, explain
from kaspar.cli.output import Column, Row, size
from kaspar.cli.session import Session, common_options

if TYPE_CHECKING:
    from kaspar.client.admin.cluster import ClusterDescription
    from kaspar.client.admin.session import Admin

_LOG_DIR_COLUMNS: Final = [
    Column("broker", "BROKER"),
    Column("path", "DIRECTORY"),
    Column("replicas", "REPLICAS"),
    Column("bytes", "SIZE", size),
    Column("usable_bytes", "FREE", size),
    Column("total_bytes", "DISK", size),
    Column("error", "ERROR", alarms=bool),
]


@click.command("list", cls=Command, epilog="Example: kaspar broker list -b localhost:9092")
@common_options
def list_brokers(session: Session) -> None:
    """List the brokers of a cluster."""
    from kaspar.cli.cluster import BROKER_COLUMNS, broker_rows, described

    with session.admin() as admin:
        cluster = described(admin)
    session.output.table(BROKER_COLUMNS, broker_rows(cluster))


@click.command("describe", cls=Command, epilog="Example: kaspar broker describe 1")
@click.argument("broker_id", metavar="ID", type=int, shell_complete=complete_brokers)
@common_options
def describe(session: Session, broker_id: int) -> None:
    """Show a broker: its address, log directories and non-default settings."""
    from kaspar.cli.cluster import BROKER_COLUMNS, broker_rows, described

    with session.admin() as admin:
        cluster = described(admin)
        _check(cluster, [broker_id])
        directories = _log_dir_rows(admin, broker_id)
        configs = _changed_configs(admin, broker_id)
    (row,) = (row for row in broker_rows(cluster) if row["id"] == broker_id)

    def draw() -> None:
        session.output.text_table(BROKER_COLUMNS, [row])
        print()
        session.output.text_table(_LOG_DIR_COLUMNS, directories)
        if configs:
            print()
            columns = [Column("name", "SETTING"), Column("value", "VALUE"), Column("source", "SOURCE")]
            session.output.text_table(columns, configs)

    session.output.record({**row, "log_dirs": directories, "configs": configs}, draw)


@click.command("log-dirs", cls=Command, epilog="Example: kaspar broker log-dirs 1 2 --json")
@click.argument("broker_ids", metavar="[ID]...", nargs=-1, type=int, shell_complete=complete_brokers)
@common_options
def log_dirs(session: Session, broker_ids: Sequence[int]) -> None:
    """Show the log directories of brokers: replicas and space used."""
    from kaspar.cli.cluster import described

    with session.admin() as admin:
        cluster = described(admin)
        _check(cluster, broker_ids)
        chosen = broker_ids or [node.node_id for node in cluster.nodes if not node.is_fenced]
        rows = [row for broker_id in chosen for row in _log_dir_rows(admin, broker_id)]
    session.output.table(_LOG_DIR_COLUMNS, rows)


def _check(cluster: "ClusterDescription", broker_ids: Sequence[int]) -> None:
    there = [node.node_id for node in cluster.nodes]
    for broker_id in broker_ids:
        if broker_id not in there:
            raise NotFound(f"there is no broker {broker_id} (brokers: {', '.join(map(str, there))})")


def _log_dir_rows(admin: "Admin", broker_id: int) -> list[Row]:
    from kaspar.client.admin.log_dirs import describe_log_dirs

    return [
        {
            "broker": broker_id,
            "path": each.path,
            "replicas": len(each.replicas),
            "bytes": sum(replica.partition_size for replica in each.replicas.values()),
            "usable_bytes": each.usable_bytes if each.usable_bytes >= 0 else None,
            "total_bytes": each.total_bytes if each.total_bytes >= 0 else None,
            "error": None if each.error is None else explain(each.error).sentence,
        }
        for each in describe_log_dirs(admin, broker_id)
    ]


def _changed_configs(admin: "Admin", broker_id: int) -> list[Row]:
    from kaspar.client.admin.configs import ConfigResource, ConfigSource, ResourceType, describe_configs

    resource = ConfigResource(ResourceType.BROKER, str(broker_id))
    entries = describe_configs(admin, [resource])[resource]
    if isinstance(entries, Refused):
        return []
    return [
        {"name": entry.name, "value": entry.value, "source": entry.source.name}
        for entry in entries.values()
        if entry.source is not ConfigSource.DEFAULT_CONFIG
    ]
