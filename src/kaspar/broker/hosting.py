"""Keeps the partitions on this broker in step with the cluster's image: logs made, given their settings, and removed.

The controller waits for this before it answers whoever changed the image, so a topic that was just created can be
written to. Logs of a deleted topic are removed when the image says so, also if that was before a crash; whoever
removed them reports it, and then the topic is forgotten. Logs that the image has never heard of are left alone: a
lost metadata file must not cost data.
"""

import asyncio
import uuid
from collections.abc import Collection
from typing import TYPE_CHECKING

from kaspar.base.errors import KasparError, Refused, StorageFailure
from kaspar.base.ids import TopicPartition
from kaspar.base.log import get_log
from kaspar.broker.metrics import BrokerState
from kaspar.broker.partitions import HostedTopic
from kaspar.config import LogConfig
from kaspar.metadata import ClusterImage, PartitionImage, TopicImage
from kaspar.metadata.events import LogsRemoved
from kaspar.replication.partition import Partition
from kaspar.replication.state import Leadership
from kaspar.storage import Expected, Log

if TYPE_CHECKING:
    from kaspar.broker.server import Broker

log = get_log(__name__)

_OF_UNKNOWN_TOPICS = {"cleanup.policy": "compact"}


def leadership_of(partition: PartitionImage) -> Leadership:
    return Leadership(
        partition.leader, partition.leader_epoch, partition.partition_epoch, partition.replicas, partition.isr
    )


def expected_logs(image: ClusterImage) -> Expected:
    """What a start may find in the log directories."""
    return Expected(
        topic_ids={name: topic.topic_id for name, topic in image.topics.items()},
        deleted=frozenset(image.deleted_topics),
    )


class Hosting:
    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._removed: set[uuid.UUID] = set()
        self._without_space: set[str] = set()
        self._removal_is_due = False
        self._following = asyncio.Lock()

    def config_of(self, topic: str, image: ClusterImage) -> LogConfig:
        """A topic that the image does not know is loaded as a compacted one: gaps in its offsets may be normal."""
        found = image.topics.get(topic)
        return LogConfig.of(self._broker.config, found.configs if found is not None else _OF_UNKNOWN_TOPICS)

    async def follow(self, image: ClusterImage, changed: Collection[str]) -> None:
        """Carry out what `changed` topics have become in `image`."""
        async with self._following:
            await self._follow(image, changed)

    async def make_missing(self) -> None:
        """Space may have returned: make the logs, and the deletions, for which there was none."""
        if self._without_space or self._removal_is_due:
            async with self._following:
                names, self._without_space = self._without_space, set()
                await self._follow(self._broker.image, names)

    async def _follow(self, image: ClusterImage, changed: Collection[str]) -> None:
        broker = self._broker
        for name in changed:
            topic = image.topics.get(name)
            hosted = broker.partitions.by_name.get(name)
            if hosted is not None and (topic is None or topic.topic_id != hosted.topic_id):
                await self._retire(hosted)
        # First, for a new topic may have the name of a deleted one, and its folders.
        await self._remove_deleted(image)
        for name in changed:
            if (topic := image.topics.get(name)) is not None:
                await self._host(topic)
        broker.encoded_topics.forget(changed)
        broker.leadership_changed(changed)

    def reconfigure(self, image: ClusterImage) -> None:
        """The broker's own settings changed, and with them the defaults of every topic. Most have no other settings, so
        they share what is made of them: this runs on the loop, for thousands of partitions.
        """
        made: dict[frozenset[tuple[str, str]], LogConfig] = {}
        for hosted in self._broker.partitions.by_name.values():
            topic = image.topics.get(hosted.name)
            overrides = {} if topic is None else topic.configs
            key = frozenset(overrides.items())
            if key not in made:
                made[key] = LogConfig.of(self._broker.config, overrides)
            for partition in hosted.partitions.values():
                partition.log.config = made[key]

    # -- topics that are there ---------------------------------------------------------------------------------------

    async def _host(self, topic: TopicImage) -> None:
        broker = self._broker
        config = LogConfig.of(broker.config, topic.configs)
        mine = {
            index: partition
            for index, partition in enumerate(topic.partitions)
            if broker.broker_id in partition.replicas
        }
        if not mine:
            return
        hosted = broker.partitions.by_name.get(topic.name)
        without = mine.keys() - (hosted.partitions.keys() if hosted is not None else ())
        starting = broker.state is not BrokerState.RUNNING
        unseen = hosted.unseen if hosted is not None else self._unseen(topic.name, without) if starting else set()
        missing = [TopicPartition(topic.name, index) for index in sorted(without - unseen)]
        logs = await broker.run_blocking(self._find_or_create, missing, topic.topic_id, config) if missing else []
        if hosted is None:
            hosted = broker.partitions.add_topic(topic.name, topic.topic_id, broker.metrics.topics.of(topic.name))
            hosted.unseen = unseen
        hosted.offline.update(without)
        hosted.offline.difference_update(one.topic_partition.partition for one in logs)
        for one in logs:
            hosted.partitions[one.topic_partition.partition] = Partition(
                one.topic_partition, topic.topic_id, one, broker.broker_id
            )
        for index, state in mine.items():
            partition = hosted.partitions.get(index)
            if partition is not None:
                partition.log.config = config
                partition.lead_or_follow(leadership_of(state))

    def _unseen(self, topic: str, without: Collection[int]) -> set[int]:
        """Those of `without` a log that may have one where we cannot look: a new one would give its offsets to other
        records. Asked at the start; what is new later is nowhere.
        """
        offline = [directory.path for directory in self._broker.logs.directories if directory.offline is not None]
        unseen = {index for index in without if offline and self._broker.logs.get(TopicPartition(topic, index)) is None}
        for index in sorted(unseen):
            log.error(
                "a partition has no log",
                partition=TopicPartition(topic, index),
                reason=f"it may be in a log directory that is offline: {', '.join(offline)}",
            )
        return unseen

    def _find_or_create(self, wanted: list[TopicPartition], topic_id: uuid.UUID, config: LogConfig) -> list[Log]:
        """In a thread. A partition whose log cannot be made is left out, and tried again later or at the next start."""
        found = []
        for topic_partition in wanted:
            try:
                one = self._broker.logs.get(topic_partition)
                if one is not None and one.topic_id is not None and one.topic_id != topic_id:
                    raise KasparError(
                        f"the folder of {topic_partition} belongs to another topic of that name: move it away"
                    )
                if one is not None and one.topic_id is None:
                    self._broker.logs.adopt(one, topic_id)
                found.append(one or self._broker.logs.create(topic_partition, topic_id, config))
                if one is not None and config.flush_messages == 1 and one.unflushed_messages:
                    # Readers may have seen what the recovery point does not cover yet: the high watermark must not go
                    # back.
                    one.flush()
            except Refused as refusal:
                log.warning("a partition has no log yet", partition=topic_partition, reason=refusal.message)
                self._without_space.add(topic_partition.topic)
            except KasparError as problem:
                log.error("a partition has no log", partition=topic_partition, reason=str(problem))
                if isinstance(problem, StorageFailure):
                    self._broker.from_thread(self._broker.log_directory_failed, problem)
        return found

    # -- topics that are gone ----------------------------------------------------------------------------------------

    async def _retire(self, hosted: HostedTopic) -> None:
        broker = self._broker
        broker.partitions.remove_topic(hosted.name)
        broker.metrics.topics.remove(hosted.name)
        for partition in hosted.partitions.values():
            partition.retire()
        for partition in hosted.partitions.values():
            await broker.syncing.finish_with(partition)
        await broker.cleaning.give_up(hosted.partitions.values())

    async def _remove_deleted(self, image: ClusterImage) -> None:
        broker = self._broker
        due = {
            deleted.topic_id
            for deleted in image.deleted_topics.values()
            if broker.broker_id in deleted.brokers and deleted.topic_id not in self._removed
        }
        if not due:
            return
        self._removal_is_due = False
        doomed = [one.topic_partition for one in broker.logs.logs.values() if one.topic_id in due]
        try:
            await broker.run_blocking(broker.logs.delete, doomed)
        except StorageFailure as failure:
            broker.log_directory_failed(failure)
            return
        except Refused as refusal:
            log.warning("deleted logs cannot be removed yet", reason=refusal.message)
            self._removal_is_due = True
            return
        if any(directory.offline is not None for directory in broker.logs.directories):
            # Some of them may be where we cannot look: the topics are not forgotten until a start that can.
            return
        self._removed |= due
        # Not awaited: the controller is waiting for us, and takes the report when it is done with that.
        broker.spawn(self._report(tuple(due)), name="report of removed logs")

    async def _report(self, topic_ids: tuple[uuid.UUID, ...]) -> None:
        try:
            await self._broker.controller.submit(LogsRemoved(self._broker.broker_id, topic_ids))
        except Refused as refusal:
            log.info("removed logs will be reported at the next start", reason=refusal.message)
        self._removed -= set(topic_ids)
