"""Replication as the rest of a broker uses it: partitions are created here, and led or followed as the image says."""

import uuid
from collections.abc import Callable, Collection, Iterable, Mapping

from kaspar.base.clock import Clock
from kaspar.base.ids import BrokerId, Offset, TopicPartition
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
from kaspar.replication.state import Leadership
from kaspar.storage import Log, LogManager


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
        self._threads = threads
        self._high_watermarks: Mapping[TopicPartition, Offset] = {}

    async def load(self) -> None:
        """Read the high watermarks that the last broker on these directories knew."""
        self._high_watermarks = await self._threads.run_blocking(self._logs.read_high_watermarks)

    def start(self) -> None:
        self.in_sync.start()

    async def stop(self) -> None:
        await self.fetchers.stop()

    def reconfigure(self) -> None:
        """The broker's settings have changed."""
        self.throttles.reconfigure()

    async def image_changed(self, change: ImageChange) -> None:
        if change.old.brokers is not change.new.brokers:
            self.fetchers.brokers_changed()
            await self.in_sync.brokers_changed()

    # -- partitions ----------------------------------------------------------------------------------------------------

    def new_partition(self, topic_id: uuid.UUID, one: Log, *, is_new: bool) -> Partition:
        """A partition over its log. A log that is new, too, has no high watermark of an earlier one."""
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
        """Apply what the controller decided. A fetcher leaves a partition before it has another leader."""
        self.fetchers.drop(
            partition
            for partition, leadership in decided
            if leadership.leader_epoch > partition.state.leadership.leader_epoch
        )
        await self.fetchers.settled()
        for partition, leadership in decided:
            partition.lead_or_follow(leadership)
        self.fetchers.follow(partition for partition, _ in decided)

    def drop(self, partitions: Iterable[Partition]) -> None:
        """These are neither led nor followed here any more, from now on. Their logs may be used otherwise, or removed,
        after `settled`.
        """
        dropped = tuple(partitions)
        self.fetchers.drop(dropped)
        for partition in dropped:
            partition.retire()

    async def settled(self) -> None:
        await self.fetchers.settled()
