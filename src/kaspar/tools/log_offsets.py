"""The offsets that commands reset groups to: those of the logs, and those that a group has committed."""

from collections.abc import Collection, Mapping
from typing import Protocol

from kaspar.base.ids import TopicPartition
from kaspar.client import Client
from kaspar.client.cluster import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from kaspar.client.offsets import fetch_committed, offsets_at

Offsets = Mapping[TopicPartition, int]


class OffsetLookup(Protocol):
    def earliest(self, partitions: Collection[TopicPartition]) -> Offsets: ...

    def latest(self, partitions: Collection[TopicPartition]) -> Offsets: ...

    def at(self, partitions: Collection[TopicPartition], timestamp_ms: int) -> Offsets:
        """Of the first record at or after this time; -1 if there is none."""
        ...

    def committed(self) -> Offsets:
        """Of the group."""
        ...


class ClusterOffsets:
    """The offsets of a cluster, as a consumer without transactions sees them."""

    def __init__(self, client: Client, group_id: str) -> None:
        self._client = client
        self._group_id = group_id

    def earliest(self, partitions: Collection[TopicPartition]) -> Offsets:
        return self.at(partitions, EARLIEST_TIMESTAMP)

    def latest(self, partitions: Collection[TopicPartition]) -> Offsets:
        return self.at(partitions, LATEST_TIMESTAMP)

    def at(self, partitions: Collection[TopicPartition], timestamp_ms: int) -> Offsets:
        return offsets_at(self._client, partitions, timestamp_ms)

    def committed(self) -> Offsets:
        return {where: each.offset for where, each in fetch_committed(self._client, self._group_id).items()}
