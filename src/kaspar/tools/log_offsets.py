"""The offsets that commands reset groups to: those of the logs, and those that groups have committed.

Each lookup is made once for all groups, because there may be thousands of them.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from kaspar.base.errors import Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.group_offsets import list_group_offsets
from kaspar.client.admin.session import Admin, accepted
from kaspar.client.admin.topics import TopicDescription, describe_topics
from kaspar.client.cluster import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from kaspar.client.offsets import offsets_at

Offsets = Mapping[TopicPartition, int]


class OffsetLookup(Protocol):
    def earliest(self, partitions: Collection[TopicPartition]) -> Offsets: ...

    def latest(self, partitions: Collection[TopicPartition]) -> Offsets: ...

    def at(self, partitions: Collection[TopicPartition], timestamp_ms: int) -> Offsets:
        """The offset of the first record at or after this time in each partition; -1 if there is none."""
        ...

    def committed(self) -> Offsets:
        """The committed offsets of the group."""
        ...


class ClusterLookups:
    def __init__(self, admin: Admin, group_ids: Sequence[str]) -> None:
        self._admin = admin
        self._group_ids = group_ids
        self._committed: dict[str, Offsets | Refused] = {}
        self._topics: dict[str, TopicDescription] = {}
        self._listed: dict[tuple[TopicPartition, int], int] = {}

    def topics(self, names: Collection[str]) -> list[TopicDescription]:
        """Raises Refused if a topic does not exist."""
        for name, topic in describe_topics(self._admin, {*names} - self._topics.keys()).items():
            self._topics[name] = accepted(topic)
        return [self._topics[name] for name in sorted(names)]

    def committed(self, group_id: str) -> Offsets:
        """The committed offsets of a group. The first call fetches those of all groups."""
        if not self._committed:
            for each, found in list_group_offsets(self._admin, self._group_ids).items():
                self._committed[each] = (
                    found
                    if isinstance(found, Refused)
                    else {where: committed.offset for where, committed in found.items()}
                )
        return accepted(self._committed[group_id])

    def listed(self, partitions: Collection[TopicPartition], timestamp_ms: int) -> Offsets:
        missing = [where for where in partitions if (where, timestamp_ms) not in self._listed]
        if missing:
            client = self._admin.client
            client.refresh_metadata(sorted({where.topic for where in missing}))
            for where, offset in offsets_at(client, missing, timestamp_ms).items():
                self._listed[where, timestamp_ms] = offset
        return {where: self._listed[where, timestamp_ms] for where in partitions}


class GroupLookup:
    """The OffsetLookup of one group."""

    def __init__(self, lookups: ClusterLookups, group_id: str) -> None:
        self._lookups = lookups
        self._group_id = group_id

    def earliest(self, partitions: Collection[TopicPartition]) -> Offsets:
        return self.at(partitions, EARLIEST_TIMESTAMP)

    def latest(self, partitions: Collection[TopicPartition]) -> Offsets:
        return self.at(partitions, LATEST_TIMESTAMP)

    def at(self, partitions: Collection[TopicPartition], timestamp_ms: int) -> Offsets:
        return self._lookups.listed(partitions, timestamp_ms)

    def committed(self) -> Offsets:
        return self._lookups.committed(self._group_id)
