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
from kaspar.broker.partitions import HostedTopic
from kaspar.config import LogConfig
from kaspar.metadata import ClusterImage, PartitionImage, TopicImage
from kaspar.metadata.events import LogsRemoved
from kaspar.replication.partition import Partition
from kaspar.replication.state import Leadership
from kaspar.storage import Log

if TYPE_CHECKING:
    from kaspar.broker.server import Broker

log = get_log(__name__)

_OF_UNKNOWN_TOPICS = {"cleanup.policy": "compact"}


def leadership_of(partition: PartitionImage) -> Leadership:
    return Leadership(
        partition.leader, partition.leader_epoch, partition.partition_epoch, partition.replicas, partition.isr
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
        self._broker.places.report()

    async def make_lost(self, topic: str, topic_id: uuid.UUID, lost: Collection[int]) -> None:
        """Make logs for partitions that were lost, now that the controller has given them up."""
        async with self._following:
            hosted = self._broker.partitions.by_id.get(topic_id)
            if hosted is not None:
                hosted.lost.difference_update(lost)
                await self._follow(self._broker.image, [topic])

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
        broker.places.report()

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
        unseen, lost = (
            (hosted.unseen, hosted.lost)
            if hosted is not None
            else broker.places.gone(topic.name, {index: mine[index] for index in sorted(without)})
        )
        # In the same turn of the loop: a directory that fails from here on takes its logs away, and none of them may be
        # taken for one that was never made.
        missing = [TopicPartition(topic.name, index) for index in sorted(without - unseen - lost)]
        found = {topic_partition: broker.logs.get(topic_partition) for topic_partition in missing}
        logs = await broker.run_blocking(self._find_or_create, found, topic.topic_id, config) if found else []
        if hosted is None:
            hosted = broker.partitions.add_topic(topic.name, topic.topic_id, broker.metrics.topics.of(topic.name))
            hosted.unseen, hosted.lost = unseen, lost
        hosted.offline.update(without)
        hosted.offline.difference_update(one.topic_partition.partition for one in logs)
        for one in logs:
            broker.places.note(one, topic.topic_id, mine[one.topic_partition.partition])
        if hosted.lost and config.unclean_leader_election_enable:
            broker.places.begin_anew(topic.name, topic.topic_id, hosted.lost)
        for one in logs:
            hosted.partitions[one.topic_partition.partition] = Partition(
                one.topic_partition, topic.topic_id, one, broker.broker_id
            )
        for index, state in mine.items():
            partition = hosted.partitions.get(index)
            if partition is not None:
                partition.log.config = config
                partition.lead_or_follow(leadership_of(state))

    def _find_or_create(
        self, wanted: dict[TopicPartition, Log | None], topic_id: uuid.UUID, config: LogConfig
    ) -> list[Log]:
        """In a thread: those that have a log, and new ones for the others. A partition whose log cannot be made is left
        out, and tried again later or at the next start.
        """
        found: list[Log] = []
        for topic_partition, one in wanted.items():
            try:
                if one is None:
                    found.append(self._broker.logs.create(topic_partition, topic_id, config))
                    continue
                if one.topic_id is None:
                    self._broker.logs.adopt(one, topic_id)
                elif one.topic_id != topic_id:
                    raise KasparError(
                        f"the folder of {topic_partition} belongs to another topic of that name: move it away"
                    )
                found.append(one)
                if config.flush_messages == 1 and one.unflushed_messages:
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
                    if one is not None and one not in found[-1:]:
                        found.append(one)  # it is offline, and must not be taken for one that was never made
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
        if broker.places.away or any(directory.offline is not None for directory in broker.logs.directories):
            # Some of them may be where we cannot look: the topics are not forgotten until a start that can.
            return
        self._removed |= due
        # Not awaited: the controller is waiting for us, and takes the report when it is done with that.
        broker.spawn(self._report(tuple(due)), name="report of removed logs")

    async def _report(self, topic_ids: tuple[uuid.UUID, ...]) -> None:
        try:
            await self._broker.controller.submit(LogsRemoved(self._broker.broker_id, topic_ids))
        except Refused as refusal:
            log.info("removed logs will be reported with the next change or start", reason=refusal.message)
        self._removed -= set(topic_ids)
