"""`kaspar log`: shows the sizes of logs and dumps their files."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kaspar.cli.command import Group
from kaspar.cli.completing import complete_topics
from kaspar.cli.output import Column, Row, size
from kaspar.cli.session import Session, common_options
from kaspar.cli.topic_lookup import existing_topics

if TYPE_CHECKING:
    from kaspar.base.ids import TopicPartition
    from kaspar.client.admin.session import Admin

_EXAMPLES: Final = """\
examples:
  kaspar log sizes                                       the size of each topic, largest first
  kaspar log sizes orders --by-partition
  kaspar log dump data/orders-0/*.log                    the batches in files of a partition
  kaspar log dump data/orders-0/00000000000000000000.log --records
"""


@click.group("log", cls=Group, epilog=_EXAMPLES)
def command() -> None:
    """Show the sizes of partition logs, and dump their files."""


@command.command("sizes", epilog=_EXAMPLES)
@click.argument("topics", nargs=-1, metavar="[TOPIC]...", shell_complete=complete_topics)
@click.option("--by-partition", is_flag=True, help="Each replica of each partition, with its directory.")
@common_options
def sizes(session: Session, topics: Sequence[str], by_partition: bool) -> None:
    """Show the disk usage of topics over all brokers, largest first."""
    with session.admin() as admin:
        wanted = {topic.name for topic in existing_topics(admin, topics)}
        replicas = [row for row in _replicas(admin) if not wanted or row["topic"] in wanted]
    if by_partition:
        columns = [
            Column("topic", "TOPIC"),
            Column("partition", "PARTITION"),
            Column("broker", "BROKER"),
            Column("bytes", "SIZE", size),
            Column("offset_lag", "LAG"),
            Column("path", "DIRECTORY"),
        ]
        rows: list[Row] = sorted(replicas, key=lambda row: (str(row["topic"]), _number(row, "partition")))
    else:
        columns = [Column("topic", "TOPIC"), Column("replicas", "REPLICAS"), Column("bytes", "SIZE", size)]
        rows = _by_topic(replicas)
    session.output.table(columns, rows, empty="There are no logs.")


def _replicas(admin: "Admin") -> list[Row]:
    from kaspar.client.admin.cluster import describe_cluster
    from kaspar.client.admin.log_dirs import describe_log_dirs

    def row(broker: int, path: str, where: "TopicPartition", size_bytes: int, lag: int) -> Row:
        place = {"topic": where.topic, "partition": where.partition, "broker": broker, "path": path}
        return {**place, "bytes": size_bytes, "offset_lag": lag}

    return [
        row(broker.node_id, directory.path, where, replica.partition_size, replica.offset_lag)
        for broker in describe_cluster(admin).nodes
        for directory in describe_log_dirs(admin, broker.node_id)
        for where, replica in directory.replicas.items()
    ]


def _by_topic(replicas: Sequence[Row]) -> list[Row]:
    of_topic: dict[str, list[int]] = defaultdict(list)
    for row in replicas:
        of_topic[str(row["topic"])].append(_number(row, "bytes"))
    rows: list[Row] = [
        {"topic": topic, "replicas": len(each), "bytes": sum(each)} for topic, each in sorted(of_topic.items())
    ]
    return sorted(rows, key=lambda row: -_number(row, "bytes"))


def _number(row: Row, key: str) -> int:
    value = row[key]
    assert isinstance(value, int)
    return value


@command.command("dump", epilog=_EXAMPLES)
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path), metavar="FILE...")
@click.option("--records", is_flag=True, help="Also the records of each batch, with keys and values.")
@click.option("--offsets", is_flag=True, help="The records are of __consumer_offsets: decode them.")
@click.option("--transactions", is_flag=True, help="The records are of __transaction_state: decode them.")
def dump(files: Sequence[Path], records: bool, offsets: bool, transactions: bool) -> int:
    """Dump local segment files (.log), indexes and snapshots, like kafka-dump-log, which has further options."""
    from kaspar.tools.dump_log.command import main as dump_log

    flags = {"--print-data-log": records, "--offsets-decoder": offsets, "--transaction-log-decoder": transactions}
    return dump_log(["--files", ",".join(map(str, files)), *(flag for flag, given in flags.items() if given)])
