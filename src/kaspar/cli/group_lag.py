"""The lag of groups: the distance from their committed offsets to the ends of the partitions."""

from collections import defaultdict
from collections.abc import Collection
from typing import TYPE_CHECKING

from kaspar.base.errors import Refused
from kaspar.cli.output import Row

if TYPE_CHECKING:
    from kaspar.base.ids import TopicPartition
    from kaspar.client.admin.session import Admin


def committed_of(admin: "Admin", group_id: str) -> "dict[TopicPartition, int]":
    """The committed offsets of a group; none if it has committed nothing. Raises Refused."""
    from kaspar.client.admin.group_offsets import list_group_offsets
    from kaspar.client.admin.session import accepted

    found = accepted(list_group_offsets(admin, [group_id])[group_id])
    return {where: each.offset for where, each in found.items()}


def end_offsets_of(admin: "Admin", partitions: "Collection[TopicPartition]") -> "dict[TopicPartition, int]":
    """The end offset of each partition that exists and has a leader."""
    from kaspar.client.admin.topics import describe_topics
    from kaspar.client.cluster import LATEST_TIMESTAMP
    from kaspar.client.offsets import offsets_at

    topics = describe_topics(admin, {where.topic for where in partitions})
    with_leader = {
        (topic.name, each.partition)
        for topic in topics.values()
        if not isinstance(topic, Refused)
        for each in topic.partitions
        if each.leader >= 0
    }
    wanted = [where for where in partitions if (where.topic, where.partition) in with_leader]
    return offsets_at(admin.client, wanted, LATEST_TIMESTAMP)


def lag_rows(admin: "Admin", group_id: str) -> list[Row]:
    """The lag of a group, by topic."""
    committed = committed_of(admin, group_id)
    ends = end_offsets_of(admin, committed)
    lags: dict[str, list[int]] = defaultdict(list)
    for where, offset in sorted(committed.items()):
        if where in ends:
            lags[where.topic].append(max(0, ends[where] - offset))
    return [
        {"group": group_id, "topic": topic, "partitions": len(each), "lag": sum(each)} for topic, each in lags.items()
    ]
