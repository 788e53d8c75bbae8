"""`kaspar cluster`: shows a cluster's brokers, health, metadata and quorum."""

from typing import TYPE_CHECKING, Final

import click

from kaspar.base.errors import Refused
from kaspar.base.sentences import some
from kaspar.cli.command import Group
from kaspar.cli.failures import FAILED
from kaspar.cli.output import Column, Row
from kaspar.cli.session import Session, common_options

if TYPE_CHECKING:
    from kaspar.client.admin.cluster import ClusterDescription
    from kaspar.client.admin.quorum import QuorumReplica
    from kaspar.client.admin.session import Admin
    from kaspar.client.admin.topics import TopicDescription

_EXAMPLES: Final = """\
examples:
  kaspar cluster info
  kaspar cluster health                     exit code 0 if healthy, 1 otherwise
  kaspar cluster metadata --json
"""
BROKER_COLUMNS: Final = [
    Column("id", "BROKER"),
    Column("host", "HOST"),
    Column("port", "PORT"),
    Column("rack", "RACK"),
    Column("controller", "CONTROLLER", lambda is_controller: "*" if is_controller else ""),
    Column("fenced", "FENCED", alarms=bool),
]


@click.group("cluster", cls=Group, epilog=_EXAMPLES)
def command() -> None:
    """Show a cluster: its brokers, health, metadata and controller quorum."""


@command.command("info", epilog="Example: kaspar cluster info -b localhost:9092")
@common_options
def info(session: Session) -> None:
    """Show the id of the cluster, its controller and its brokers."""
    with session.admin() as admin:
        cluster = described(admin)
    record = {"id": cluster.cluster_id, "controller": cluster.controller_id, "brokers": broker_rows(cluster)}

    def draw() -> None:
        session.output.fields([("cluster", cluster.cluster_id), ("controller", _controller(cluster))])
        print()
        session.output.text_table(BROKER_COLUMNS, broker_rows(cluster))

    session.output.record(record, draw)


def described(admin: "Admin") -> "ClusterDescription":
    """Describe the cluster, including fenced brokers if the cluster reports them."""
    from kaspar.client.admin.cluster import describe_with_fenced

    return describe_with_fenced(admin)


def broker_rows(cluster: "ClusterDescription") -> list[Row]:
    return [
        {
            "id": node.node_id,
            "host": node.host,
            "port": node.port,
            "rack": node.rack,
            "controller": node.node_id == cluster.controller_id,
            "fenced": node.is_fenced,
        }
        for node in cluster.nodes
    ]


def _controller(cluster: "ClusterDescription") -> str:
    return "none" if cluster.controller_id < 0 else f"broker {cluster.controller_id}"


@command.command("health", epilog="Example: kaspar cluster health || alert")
@common_options
def health(session: Session) -> int:
    """Check that every broker is serving and that every partition has a leader and all replicas in sync. The exit code
    is 0 if the cluster is healthy, 1 otherwise."""
    with session.admin() as admin:
        cluster = described(admin)
        topics = _all_topics(admin)
    partitions = [(topic.name, each) for topic in topics for each in topic.partitions]
    leaderless = [f"{name}-{each.partition}" for name, each in partitions if each.leader < 0]
    behind = [f"{name}-{each.partition}" for name, each in partitions if len(each.isr) < len(each.replicas)]
    down = sorted(
        {broker for _, each in partitions for broker in each.offline_replicas}
        | {node.node_id for node in cluster.nodes if node.is_fenced}
    )
    is_healthy = cluster.controller_id >= 0 and not (leaderless or behind or down)
    record = {
        "healthy": is_healthy,
        "controller": cluster.controller_id,
        "brokers": len([node for node in cluster.nodes if not node.is_fenced]),
        "brokers_down": down,
        "partitions": len(partitions),
        "leaderless_partitions": leaderless,
        "under_replicated_partitions": behind,
    }

    def draw() -> None:
        session.output.heading("The cluster is healthy." if is_healthy else "The cluster is NOT healthy.")
        session.output.fields(
            [
                ("controller", _controller(cluster)),
                ("brokers", record["brokers"]),
                ("brokers down", down or "none"),
                ("partitions", len(partitions)),
                ("without leader", _some(leaderless)),
                ("under-replicated", _some(behind)),
            ]
        )

    session.output.record(record, draw)
    return 0 if is_healthy else FAILED


def _some(names: list[str], most: int = 10) -> str:
    if not names:
        return "none"
    return f"{len(names)} ({some(names, most)})"


@command.command("metadata", epilog="Example: kaspar cluster metadata --json | jq '.topics | length'")
@common_options
def metadata(session: Session) -> None:
    """Show the brokers and all topics, including internal ones."""
    from kaspar.cli.topic import TOPIC_COLUMNS, topic_row

    with session.admin() as admin:
        cluster = described(admin)
        topics = [topic_row(topic) for topic in _all_topics(admin)]
    brokers = broker_rows(cluster)
    record = {"id": cluster.cluster_id, "controller": cluster.controller_id, "brokers": brokers, "topics": topics}

    def draw() -> None:
        session.output.fields([("cluster", cluster.cluster_id), ("controller", _controller(cluster))])
        print()
        session.output.text_table(BROKER_COLUMNS, brokers)
        if topics:
            print()
            session.output.text_table(TOPIC_COLUMNS, topics)

    session.output.record(record, draw)


def _all_topics(admin: "Admin") -> "list[TopicDescription]":
    from kaspar.client.admin.topics import describe_topics, list_topics

    found = describe_topics(admin, list_topics(admin))
    return [topic for topic in found.values() if not isinstance(topic, Refused)]


@command.command("quorum", epilog="Example: kaspar cluster quorum")
@common_options
def quorum(session: Session) -> None:
    """Show the controller quorum of an Apache Kafka cluster (KRaft) and the lag of each member. Kaspar stores metadata
    in a file or in ZooKeeper, and shows the controller as the only voter."""
    from kaspar.client.admin.quorum import describe_quorum

    with session.admin() as admin:
        found = describe_quorum(admin)
    rows = [_quorum_row(each, "voter", found.high_watermark) for each in found.voters]
    rows += [_quorum_row(each, "observer", found.high_watermark) for each in found.observers]
    record = {
        "leader": found.leader_id,
        "leader_epoch": found.leader_epoch,
        "high_watermark": found.high_watermark,
        "replicas": rows,
    }

    def draw() -> None:
        numbers = [("leader epoch", found.leader_epoch), ("high watermark", found.high_watermark)]
        session.output.fields([("leader", found.leader_id), *numbers])
        print()
        columns = [
            Column("id", "NODE"),
            Column("status", "STATUS"),
            Column("log_end_offset", "LOG END"),
            Column("lag", "LAG"),
        ]
        session.output.text_table(columns, rows)

    session.output.record(record, draw)


def _quorum_row(replica: "QuorumReplica", status: str, high_watermark: int) -> Row:
    return {
        "id": replica.replica_id,
        "status": status,
        "log_end_offset": replica.log_end_offset,
        "lag": max(0, high_watermark - replica.log_end_offset),
        "last_caught_up_timestamp": replica.last_caught_up_timestamp,
    }
