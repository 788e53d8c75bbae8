"""Assigns partitions to fetchers: `num.replica.fetchers` for each leader, as in Kafka's ReplicaFetcherManager."""

import asyncio
import zlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kaspar.base.ids import BrokerId, TopicPartition
from kaspar.broker.replication.services import FetcherServices
from kaspar.replication.fetches import PartitionKey
from kaspar.replication.partition import Partition
from kaspar.replication.state import Role

if TYPE_CHECKING:  # not loaded by a broker that follows no partition
    from kaspar.broker.replication.fetcher import ReplicaFetcher


class ReplicaFetcherManager:
    """Owned by the event loop."""

    def __init__(self, services: FetcherServices) -> None:
        self._services = services
        self._fetchers: dict[tuple[BrokerId, int], ReplicaFetcher] = {}
        self._fetcher_of: dict[PartitionKey, ReplicaFetcher] = {}
        self._dropped: list[tuple[ReplicaFetcher, list[PartitionKey]]] = []
        """Fetchers and removed partitions, whose logs a thread may still be truncating."""
        self._is_stopping = False

    def __len__(self) -> int:
        return len(self._fetchers)

    @property
    def max_lag(self) -> int:
        """The number of committed records that the partition furthest behind lacks. For any thread."""
        return max((fetcher.lag_of(key) for key, fetcher in list(self._fetcher_of.items())), default=0)

    def lags(self) -> list[tuple[str, TopicPartition, int]]:
        """For each copied partition the fetcher's client id in Kafka, and the committed records that it lacks. For any
        thread.
        """
        copied = ((fetcher.kafka_name, fetcher.fetch_of(key)) for key, fetcher in list(self._fetcher_of.items()))
        return [(name, fetch.topic_partition, fetch.lag) for name, fetch in copied if fetch is not None]

    @property
    def failed_partition_count(self) -> int:
        """The number of partitions that are no longer copied, because that failed. For any thread."""
        fetches = (fetcher.fetch_of(key) for key, fetcher in list(self._fetcher_of.items()))
        return sum(fetch is not None and fetch.has_failed for fetch in fetches)

    @property
    def min_fetch_rate(self) -> float:
        """Fetches per second of the fetcher that fetches least often; 0 if there is none. For any thread."""
        return min((fetcher.fetch_rate for fetcher in list(self._fetchers.values())), default=0.0)

    def follow(self, partitions: Iterable[Partition]) -> None:
        """Copy partitions that follow another broker, each from the leader in its state. Partitions that are copied
        already are not affected.
        """
        for partition in partitions:
            state, key = partition.state, _key(partition)
            if self._is_stopping or key in self._fetcher_of or state.role is not Role.FOLLOWER:
                continue
            if state.leadership.leader >= 0 and not partition.offline:
                fetcher = self._fetcher_of[key] = self._fetcher_for(partition)
                fetcher.add(partition)

    def _fetcher_for(self, partition: Partition) -> "ReplicaFetcher":
        from kaspar.broker.replication.fetcher import ReplicaFetcher

        leader = partition.state.leadership.leader
        count = self._services.settings.config.num_replica_fetchers
        # hash() is not used, because the fetcher of a partition should be the same after a restart.
        number = zlib.crc32(str(partition.topic_partition).encode()) % count
        if (leader, number) not in self._fetchers:
            self._fetchers[leader, number] = ReplicaFetcher(leader, number, self._services)
        return self._fetchers[leader, number]

    def brokers_changed(self) -> None:
        for fetcher in self._fetchers.values():
            fetcher.wake()

    def drop(self, partitions: Iterable[Partition]) -> None:
        """Stop copying these partitions. Their logs can be used for other purposes once `settled` returns."""
        dropped: dict[ReplicaFetcher, list[PartitionKey]] = {}
        for partition in partitions:
            key = _key(partition)
            fetcher = self._fetcher_of.pop(key, None)
            if fetcher is not None:
                fetcher.remove(key)
                dropped.setdefault(fetcher, []).append(key)
        self._dropped += dropped.items()

    async def settled(self) -> None:
        """Wait until no thread truncates the log of a dropped partition."""
        while self._dropped:
            fetcher, keys = self._dropped[-1]
            await fetcher.settled(keys)
            if (fetcher, keys) in self._dropped:
                self._dropped.remove((fetcher, keys))

    async def stop_idle(self) -> None:
        """Stop fetchers that have no partitions."""
        idle = [each for each, fetcher in self._fetchers.items() if not len(fetcher)]
        await asyncio.gather(*(self._fetchers.pop(each).stop() for each in idle))

    async def stop(self) -> None:
        """Stop all fetchers. Safe to call twice."""
        self._is_stopping = True
        await self.settled()
        fetchers, self._fetchers, self._fetcher_of = self._fetchers, {}, {}
        await asyncio.gather(*(fetcher.stop() for fetcher in fetchers.values()))


def _key(partition: Partition) -> PartitionKey:
    return partition.topic_id, partition.topic_partition.partition
