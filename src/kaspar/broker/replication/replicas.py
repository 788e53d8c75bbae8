"""Replication as the rest of a broker uses it: creates partitions, and leads or follows them as the image says."""

import functools
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping

from kaspar.base.clock import Clock
from kaspar.base.errors import StorageFailure
from kaspar.base.ids import BrokerId, Offset, TopicPartition
from kaspar.base.log import get_log
from kaspar.broker.partitions import Partitions
from kaspar.broker.replication.cluster import BrokerConnector, ImageClusterView
from kaspar.broker.replication.fetcher_manager import ReplicaFetcherManager
from kaspar.broker.replication.in_sync import AlterPartitionManager
from kaspar.broker.replication.services import FetcherServices
from kaspar.broker.replication.throttles import ReplicationThrottles
from kaspar.broker.security.between_brokers import ConnectToBroker
from kaspar.broker.services import CurrentSettings, Failures, Tasks, Threads
from kaspar.controller.channel import ControllerChannel
from kaspar.metadata.images import ImageChange, ImageSource
from kaspar.replication.partition import Partition
from kaspar.replication.state import Leadership, Role
from kaspar.storage import Log, LogManager

log = get_log(__name__)


class Replicas:
    def __init__(
        self,
        broker_id: BrokerId,
        settings: CurrentSettings,
        *,
        images: ImageSource,
        controller: ControllerChannel,
        broker_epoch: Callable[[], int],
        partitions: Partitions,
        logs: LogManager,
        clock: Clock,
        connection_lost: Callable[[BrokerId], None],
        ask_to_sync: Callable[[Partition], None],
        threads: Threads,
        tasks: Tasks,
        failures: Failures,
        connect: ConnectToBroker,
    ) -> None:
        self.throttles = ReplicationThrottles(broker_id, settings)
        self.in_sync = AlterPartitionManager(
            broker_id,
            settings,
            partitions=partitions,
            controller=controller,
            broker_epoch=broker_epoch,
            tasks=tasks,
            failures=failures,
        )
        self.fetchers = ReplicaFetcherManager(
            FetcherServices(
                broker_id,
                settings,
                logs,
                self.throttles,
                threads,
                failures,
                clock,
                broker_epoch,
                BrokerConnector(images, settings, connect).connect,
                connection_lost,
                ask_to_sync,
            )
        )
        self._broker_id = broker_id
        self._cluster = ImageClusterView(images, settings)
        self._logs = logs
        self._clock = clock
        self._threads = threads
        self._failures = failures
        self._high_watermarks: Mapping[TopicPartition, Offset] = {}
        self._half_truncated: set[Partition] = set()
        """Partitions that this broker leads, but that accept no records until their truncation is finished."""
        self._dropped: set[Partition] = set()
        """Partitions that were dropped since the last `lead_or_follow` began."""

    async def load(self) -> None:
        """Read the high watermarks that the last broker process on these directories has stored."""
        self._high_watermarks = await self._threads.run_blocking(self._logs.read_high_watermarks)

    def start(self) -> None:
        self.in_sync.start()

    async def stop(self) -> None:
        await self.fetchers.stop()

    def reconfigure(self) -> None:
        """Apply changed settings."""
        self.throttles.reconfigure()

    async def image_changed(self, change: ImageChange) -> None:
        if change.old.brokers is not change.new.brokers:
            self.fetchers.brokers_changed()
            await self.in_sync.brokers_changed()

    # -- partitions ----------------------------------------------------------------------------------------------------

    def new_partition(self, topic_id: uuid.UUID, one: Log, *, is_new: bool) -> Partition:
        """Create a partition for its log. A new log does not get the stored high watermark of an older one."""
        known = Offset(0) if is_new else self._high_watermarks.get(one.topic_partition, Offset(0))
        return Partition(
            one.topic_partition,
            topic_id,
            one,
            self._broker_id,
            cluster=self._cluster,
            propose=self.in_sync.propose,
            high_watermark=known,
        )

    async def lead_or_follow(self, decided: Collection[tuple[Partition, Leadership]]) -> None:
        """Apply the controller's decisions. A fetcher drops a partition before it gets another leader. Partitions that
        are dropped in the meantime, perhaps because this broker has lost its registration, are neither led nor
        followed. Must not be called again before it has returned.
        """
        self._dropped.clear()
        self.fetchers.drop(
            partition
            for partition, leadership in decided
            if leadership.leader_epoch > partition.state.leadership.leader_epoch
        )
        await self.fetchers.settled()
        await self._finish_truncations(
            partition
            for partition, leadership in decided
            if partition.log.truncation_due and leadership.leader == self._broker_id
        )
        for partition, leadership in decided:
            if partition not in self._dropped:
                partition.lead_or_follow(leadership)
        self.fetchers.follow(partition for partition, _ in decided if partition not in self._dropped)

    @property
    def has_half_truncated(self) -> bool:
        """Whether this broker leads partitions whose truncation is not finished."""
        return bool(self._half_truncated)

    async def finish_truncations(self) -> None:
        """Retry truncations that failed for lack of space, for partitions that this broker leads; fetchers do it for
        the others. Must not run at the same time as `lead_or_follow`.
        """
        waiting, self._half_truncated = self._half_truncated, set()
        await self._finish_truncations(each for each in waiting if each.state.role is Role.LEADER)

    async def _finish_truncations(self, partitions: Iterable[Partition]) -> None:
        due = {each.topic_partition: each for each in partitions if each.log.truncation_due and not each.offline}
        if not due:
            return
        for partition in due.values():
            partition.log.truncating = True
        offsets = {topic_partition: each.log.log_end_offset for topic_partition, each in due.items()}
        truncate = functools.partial(self._logs.truncate_to, offsets, now_ms=self._clock.now_ms())
        failures = await self._threads.run_blocking(truncate)
        for topic_partition, partition in due.items():
            partition.log.truncating = partition.log.truncation_due
            failure = failures.get(topic_partition)
            if isinstance(failure, StorageFailure):
                self._failures.log_directory_failed(failure)
            elif failure is not None:
                log.warning("a leader cannot accept records yet", partition=topic_partition, reason=failure.message)
                self._half_truncated.add(partition)

    def drop(self, partitions: Iterable[Partition]) -> None:
        """Stop leading and following these partitions. Their logs may be used for other purposes, or removed, after
        `settled`.
        """
        dropped = tuple(partitions)
        self._dropped.update(dropped)
        self.fetchers.drop(dropped)
        for partition in dropped:
            partition.retire()

    async def settled(self) -> None:
        await self.fetchers.settled()
