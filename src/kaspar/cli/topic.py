"""`kaspar topic`: lists and describes topics. The commands that change topics are in `topic_changes`."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from kaspar.base.errors import Refused
from kaspar.cli.command import Group
from kaspar.cli.completing import complete_topics
from kaspar.cli.output import Column, Row
from kaspar.cli.session import Session, common_options
from kaspar.cli.topic_changes import add_partitions, alter, create, delete, trim
from kaspar.cli.topic_lookup import existing_topics
from kaspar.cli.topic_names import expression_of

if TYPE_CHECKING:
    from kaspar.client.admin.session import Admin
    from kaspar.client.admin.topics import TopicDescription

_EXAMPLES: Final = """\
examples:
  kaspar topic create orders --partitions 6 --set retention.ms=86400000
  kaspar topic list
  kaspar topic describe orders
  kaspar topic alter orders --set cleanup.policy=compact
  kaspar topic delete orders
"""
TOPIC_COLUMNS: Final = [
    Column("name", "TOPIC"),
    Column("partitions", "PARTITIONS"),
    Column("replication_factor", "REPLICAS"),
    Column("under_replicated", "UNDER-REPLICATED", alarms=bool),
    Column("offline", "OFFLINE", alarms=bool),
]


@click.group("topic", cls=Group, epilog=_EXAMPLES)
def command() -> None:
    """List, create, describe, change and delete topics."""


for _change in (create, delete, alter, add_partitions, trim):
    command.add_command(_change)


@command.command(
    "list",
    epilog="""\
examples:
  kaspar topic list
  kaspar topic list 'orders-*' --json
  kaspar topic list --no-headers | cut -d' ' -f1       names only
""",
)
@click.argument("patterns", nargs=-1, metavar="[PATTERN]...")
@click.option("--internal", is_flag=True, help="Include internal topics, such as __consumer_offsets.")
@common_options
def list_topics(session: Session, patterns: Sequence[str], internal: bool) -> None:
    """List topics: all, or those whose name matches a PATTERN such as 'orders-*' or '^orders-[0-9]+$'."""
    from kaspar.client.admin import topics

    expressions = [re.compile(expression_of(pattern)) for pattern in patterns]

    def is_listed(name: str) -> bool:
        return not patterns or any(expression.search(name) for expression in expressions)

    with session.admin() as admin:
        names = [name for name in topics.list_topics(admin, include_internal=internal) if is_listed(name)]
        described = topics.describe_topics(admin, names)
    rows = [topic_row(topic) for topic in described.values() if not isinstance(topic, Refused)]
    none = "No topic matches." if patterns else "There are no topics: 'kaspar topic create NAME' creates one."
    session.output.table(TOPIC_COLUMNS, rows, empty=none)


def topic_row(topic: "TopicDescription") -> Row:
    return {
        "name": topic.name,
        "partitions": len(topic.partitions),
        "replication_factor": max((len(each.replicas) for each in topic.partitions), default=0),
        "under_replicated": sum(len(each.isr) < len(each.replicas) for each in topic.partitions),
        "offline": sum(each.leader < 0 for each in topic.partitions),
        "internal": topic.is_internal,
    }


@command.command(
    "describe",
    epilog="""\
examples:
  kaspar topic describe orders
  kaspar topic describe orders --all-configs
  kaspar topic describe orders --json | jq '.[0].partitions[] | select(.leader < 0)'
""",
)
@click.argument("names", nargs=-1, required=True, metavar="TOPIC...", shell_complete=complete_topics)
@click.option("--all-configs", is_flag=True, help="Show all settings, including defaults.")
@common_options
def describe(session: Session, names: Sequence[str], all_configs: bool) -> None:
    """Show the partitions of topics, with their leaders, replicas and offsets, and the settings that were changed."""
    with session.admin() as admin:
        records = [_described(admin, topic, all_configs=all_configs) for topic in existing_topics(admin, names)]
    if not session.output.is_text:
        session.output.value(records)
        return
    for number, record in enumerate(records):
        if number:
            print()
        _draw(session, record)


def _described(admin: "Admin", topic: "TopicDescription", *, all_configs: bool) -> dict[str, object]:
    from kaspar.base.ids import TopicPartition, uuid_to_text
    from kaspar.client.cluster import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
    from kaspar.client.offsets import offsets_at

    with_leader = [TopicPartition(topic.name, each.partition) for each in topic.partitions if each.leader >= 0]
    start = offsets_at(admin.client, with_leader, EARLIEST_TIMESTAMP)
    end = offsets_at(admin.client, with_leader, LATEST_TIMESTAMP)

    def partition_row(number: int) -> Row:
        each = topic.partitions[number]
        where = TopicPartition(topic.name, each.partition)
        return {
            "partition": each.partition,
            "leader": each.leader,
            "leader_epoch": each.leader_epoch,
            "replicas": list(each.replicas),
            "isr": list(each.isr),
            "offline_replicas": list(each.offline_replicas),
            "start_offset": start.get(where),
            "end_offset": end.get(where),
        }

    return {
        **topic_row(topic),
        "id": uuid_to_text(topic.topic_id),
        "partitions": [partition_row(number) for number in range(len(topic.partitions))],
        "configs": _configs(admin, topic.name, all_configs=all_configs),
    }


def _configs(admin: "Admin", name: str, *, all_configs: bool) -> list[Row]:
    from kaspar.client.admin.configs import ConfigResource, ConfigSource, ResourceType, describe_configs

    resource = ConfigResource(ResourceType.TOPIC, name)
    entries = describe_configs(admin, [resource])[resource]
    if isinstance(entries, Refused):  # the user may describe the topic, but not its settings
        return []
    return [
        {"name": entry.name, "value": entry.value, "source": entry.source.name}
        for entry in entries.values()
        if all_configs or entry.source is ConfigSource.DYNAMIC_TOPIC_CONFIG
    ]


def _draw(session: Session, record: dict[str, object]) -> None:
    output = session.output
    partitions, configs = record["partitions"], record["configs"]
    assert isinstance(partitions, list)
    assert isinstance(configs, list)
    output.heading(str(record["name"]))
    output.fields(
        [
            ("id", record["id"]),
            ("partitions", len(partitions)),
            ("replicas", record["replication_factor"]),
            ("internal", record["internal"]),
        ]
    )
    print()
    output.text_table(
        [
            Column("partition", "PARTITION"),
            Column("leader", "LEADER", lambda leader: "none" if leader == -1 else str(leader), lambda each: each == -1),
            Column("leader_epoch", "EPOCH"),
            Column("replicas", "REPLICAS"),
            Column("isr", "IN-SYNC"),
            Column("start_offset", "START"),
            Column("end_offset", "END"),
        ],
        partitions,
    )
    if configs:
        print()
        output.text_table([Column("name", "SETTING"), Column("value", "VALUE"), Column("source", "SOURCE")], configs)
