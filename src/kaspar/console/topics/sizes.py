"""The bytes of partitions: those of their leaders' replicas, as the brokers' log directories report them."""

from collections.abc import Collection, Iterable
from typing import Final

from kaspar.base.errors import Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.log_dirs import describe_log_dirs
from kaspar.client.admin.session import Admin
from kaspar.client.admin.topics import TopicDescription

_MOST_NAMED: Final = 1_000
"""The maximum number of partitions in a request. A broker reports all of its replicas faster than it reads the names of
many partitions, and limits how many it reads."""


def partition_sizes(admin: Admin, topics: Collection[TopicDescription]) -> dict[TopicPartition, int]:
    """The sizes of the partitions whose leaders report them. Empty for a caller who may not describe the cluster, to
    which log directories belong."""
    sizes: dict[TopicPartition, int] = {}
    for leader, partitions in _by_leader(topics).items():
        try:
            log_dirs = describe_log_dirs(admin, leader, partitions if len(partitions) <= _MOST_NAMED else None)
        except Refused:  # not permitted, or the broker has just left
            continue
        found = {where: replica.partition_size for log_dir in log_dirs for where, replica in log_dir.replicas.items()}
        sizes |= {where: found[where] for where in partitions if where in found}
    return sizes


def _by_leader(topics: Iterable[TopicDescription]) -> dict[int, list[TopicPartition]]:
    found: dict[int, list[TopicPartition]] = {}
    for topic in topics:
        for each in topic.partitions:
            if each.leader >= 0:
                found.setdefault(each.leader, []).append(TopicPartition(topic.name, each.partition))
    return found
