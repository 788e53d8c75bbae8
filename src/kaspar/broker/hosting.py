"""Keeps the partitions on this broker in step with the cluster's image: creates, configures and removes their logs.

The controller's responses are passed on only after this (controller/channel.py), so a topic that was just created can
be written to. Logs are removed when the image says that their topic is deleted, even if it was deleted before a crash.
The removal is reported, and then the controller forgets the topic. Logs that the image does not mention are left alone,
whether their topic is hosted or not: neither an incomplete image nor a lost metadata file may cost data. When a
partition is reassigned to other brokers, the replica here is removed together with its log.
"""

import asyncio
import uuid
from collections.abc import Callable, Collection

from kaspar.base.errors import KasparError, Refused, StorageFailure
from kaspar.base.ids import BrokerId, TopicPartition
from kaspar.base.log import get_log
from kaspar.broker.cleaning.log_cleaner import Cleaning
from kaspar.broker.log_dir_moves import LogDirMoves
from kaspar.broker.log_places import LogPlaces
from kaspar.broker.metrics import BrokerTopicMetrics
from kaspar.broker.partitions import HostedTopic, Partitions
from kaspar.broker.replication.replicas import Replicas
from kaspar.broker.services import CurrentSettings, Failures, Tasks, Threads
from kaspar.broker.syncing import Syncing
from kaspar.config import LogConfig
from kaspar.controller.channel import ControllerChannel
from kaspar.controller.events import LogsRemoved
from kaspar.metadata import ClusterImage, PartitionImage, TopicImage
from kaspar.metadata.images import ImageChange, ImageSource
from kaspar.replication.partition import Partition
from kaspar.replication.state import Leadership
from kaspar.storage import Log, LogManager

log = get_log(__name__)

_OF_UNKNOWN_TOPICS = {"cleanup.policy": "compact"}


def leadership_of(partition: PartitionImage) -> Leadership:
    return Leadership(
        partition.leader,
        partition.leader_epoch,
        partition.partition_epoch,
        partition.replicas,
        partition.isr,
        partition.adding_replicas,
        partition.is_reassigning,
    )


class Hosting:
    def __init__(
        self,
        broker_id: BrokerId,
        settings: CurrentSettings,
        *,
        images: ImageSource,
        controller: ControllerChannel,
        partitions: Partitions,
        logs: LogManager,
        places: LogPlaces,
        replicas: Replicas,
        moves: LogDirMoves,
        topic_metrics: BrokerTopicMetrics,
        syncing: Syncing,
        cleaning: Cleaning,
        threads: Threads,
        tasks: Tasks,
        failures: Failures,
        leadership_changed: Callable[[Collection[str]], None],
    ) -> None:
        """`leadership_changed` is called with the topics whose partitions were added, removed or got another leader."""
        self._broker_id = broker_id
        self._settings = settings
        self._images = images
        self._controller = controller
        self._partitions = partitions
        self._logs = logs
        self._places = places
        self._replicas = replicas
        self._moves = moves
        self._topic_metrics = topic_metrics
        self._syncing = syncing
        self._cleaning = cleaning
        self._threads = threads
        self._tasks = tasks
        self._failures = failures
        self._leadership_changed = leadership_changed
        self._removed: set[uuid.UUID] = set()
        self._without_space: set[str] = set()
        self._removal_is_due = False
        self._has_resigned = False
        self._resignations = 0
        self._following = asyncio.Lock()

    def config_of(self, topic: str, image: ClusterImage) -> LogConfig:
        """The topic's config. A topic that is not in the image is loaded as a compacted one, because gaps in its
        offsets may be normal.
        """
        found = image.topics.get(topic)
        return LogConfig.of(self._settings.config, found.configs if found is not None else _OF_UNKNOWN_TOPICS)

    async def follow(self, change: ImageChange) -> None:
        async with self._following:
            await self._follow(change.new, change.changed_topics)

    async def make_missing(self) -> None:
        """Retry what failed for lack of space: create logs, remove those of deleted topics, and truncate logs."""
        if self._without_space or self._removal_is_due:
            async with self._following:
                names, self._without_space = self._without_space, set()
                await self._follow(self._images.current, names)
        if self._replicas.has_half_truncated:
            async with self._following:
                await self._replicas.finish_truncations()
        self._places.report()

    async def make_lost(self, topic: str, topic_id: uuid.UUID, lost: Collection[int]) -> None:
        """Create logs for lost partitions, after the controller has given up the old ones."""
        async with self._following:
            hosted = self._partitions.by_id.get(topic_id)
            if hosted is not None:
                hosted.lost.difference_update(lost)
                await self._follow(self._images.current, [topic])

    async def _follow(self, image: ClusterImage, changed: Collection[str]) -> None:
        """Apply the image's state of these topics. A topic of this broker is among the deleted ones until its removal
        is reported, so the image alone says whether it is deleted.
        """
        for name in changed:
            topic = image.topics.get(name)
            hosted = self._partitions.by_name.get(name)
            if hosted is None:
                continue
            is_recreated = topic is not None and topic.topic_id != hosted.topic_id
            if is_recreated or hosted.topic_id in image.deleted_topics:
                await self._retire(hosted)
        # Deleted logs are removed first, because a new topic may have the name of a deleted one, and thus its folders.
        await self._remove_deleted(image)
        for name in changed:
            if (topic := image.topics.get(name)) is not None:
                await self._remove_left(topic)
                await self._host(topic)
        await self._replicas.fetchers.stop_idle()
        self._leadership_changed(changed)
        self._places.report()

    def reconfigure(self, image: ClusterImage) -> None:
        """Apply changed broker settings, which are the defaults of every topic. Most topics have no overrides and share
        one config: this runs on the event loop, for thousands of partitions.
        """
        configs: dict[frozenset[tuple[str, str]], LogConfig] = {}
        for hosted in self._partitions.by_name.values():
            topic = image.topics.get(hosted.name)
            overrides = {} if topic is None else topic.configs
            key = frozenset(overrides.items())
            if key not in configs:
                configs[key] = LogConfig.of(self._settings.config, overrides)
            for partition in hosted.partitions.values():
                partition.reconfigure(configs[key])

    def take_directory_offline(self, failure: StorageFailure) -> None:
        """Continue without that log directory. Stop the broker if no directory is left."""
        given_up = self._logs.take_offline(failure.directory, str(failure))
        found = (self._partitions.get(one.topic_partition) for one in given_up)
        self._replicas.drop(partition for partition in found if partition is not None)
        self._leadership_changed({one.topic_partition.topic for one in given_up})
        if all(directory.offline is not None for directory in self._logs.directories):
            self._failures.stop_broker(failure)
        else:
            self._places.failed(failure.directory)

    def resign(self) -> None:
        """Stop leading and following until `resume`, because the controller may have fenced this broker."""
        self._has_resigned = True
        self._resignations += 1
        self._replicas.drop(tuple(self._partitions))
        self._leadership_changed(tuple(self._partitions.by_name))

    async def resume(self) -> None:
        """Lead and follow what the current image says. Cancelling this does not interrupt the work, because threads may
        be using logs; only another `resign` ends it.
        """
        await asyncio.shield(self._tasks.spawn(self._resume(self._resignations), name="leadership resumes"))

    async def _resume(self, resignations: int) -> None:
        async with self._following:
            if self._resignations != resignations:
                return
            self._has_resigned = False
            await self._replicas.settled()
            await self._follow(self._images.current, tuple(self._images.current.topics))

    # -- topics of the image ------------------------------------------------------------------------------------------

    async def _host(self, topic: TopicImage) -> None:
        config = LogConfig.of(self._settings.config, topic.configs)
        mine = {
            index: partition
            for index, partition in enumerate(topic.partitions)
            if self._broker_id in partition.replicas
        }
        if not mine:
            return
        hosted = self._partitions.by_name.get(topic.name)
        without = mine.keys() - (hosted.partitions.keys() if hosted is not None else ())
        unseen, lost = (
            (hosted.unseen, hosted.lost)
            if hosted is not None
            else self._places.gone(topic.name, {index: mine[index] for index in sorted(without)})
        )
        # Looked up in the same turn of the event loop: a directory that fails later takes its logs out of this lookup,
        # and they must not be mistaken for logs that were never created.
        missing = [TopicPartition(topic.name, index) for index in sorted(without - unseen - lost)]
        found = {topic_partition: self._logs.get(topic_partition) for topic_partition in missing}
        logs = await self._threads.run_blocking(self._find_or_create, found, topic.topic_id, config) if found else []
        if hosted is None:
            hosted = self._partitions.add_topic(topic.name, topic.topic_id, self._topic_metrics.of(topic.name))
            hosted.unseen, hosted.lost = unseen, lost
        hosted.offline.update(without)
        hosted.offline.difference_update(one.topic_partition.partition for one in logs)
        for one in logs:
            self._places.note(one, topic.topic_id, mine[one.topic_partition.partition])
        given_up = {
            index
            for index in hosted.lost & mine.keys()
            if config.unclean_leader_election_enable
            or any(one != self._broker_id for one in (*mine[index].isr, *mine[index].elr))
        }
        if given_up:  # even where another replica is in sync: then no records are lost
            self._places.give_up(topic.name, topic.topic_id, given_up, self.make_lost)
        for one in logs:
            is_new = found[one.topic_partition] is None
            added = self._replicas.new_partition(topic.topic_id, one, is_new=is_new)
            hosted.partitions[one.topic_partition.partition] = added
            self._moves.resume(added)
        decided = [
            (partition, leadership_of(state))
            for index, state in mine.items()
            if (partition := hosted.partitions.get(index)) is not None
        ]
        for partition, _ in decided:
            partition.reconfigure(config)
        if not self._has_resigned:
            await self._replicas.lead_or_follow(decided)

    def _find_or_create(
        self, wanted: dict[TopicPartition, Log | None], topic_id: uuid.UUID, config: LogConfig
    ) -> list[Log]:
        """Runs in a thread: return the logs that exist, and new ones for the other partitions. A partition whose log
        cannot be created is left out, and is retried later or at the next start.
        """
        found: list[Log] = []
        for topic_partition, one in wanted.items():
            try:
                if one is None:
                    found.append(self._logs.create(topic_partition, topic_id, config))
                    continue
                if one.topic_id is None:
                    self._logs.adopt(one, topic_id)
                elif one.topic_id != topic_id:
                    raise KasparError(
                        f"the folder of {topic_partition} belongs to another topic with that name: move it away"
                    )
                found.append(one)
                if config.flush_messages == 1 and one.unflushed_messages:
                    # Consumers may have read records beyond the recovery point: the high watermark must not go back.
                    one.flush()
            except Refused as refusal:
                log.warning("a partition has no log yet", partition=topic_partition, reason=refusal.message)
                self._without_space.add(topic_partition.topic)
            except KasparError as problem:
                log.error("a partition has no log", partition=topic_partition, reason=str(problem))
                if isinstance(problem, StorageFailure):
                    if one is None:
                        self._without_space.add(topic_partition.topic)  # another directory may have space for it
                    self._threads.call_on_loop(self._failures.log_directory_failed, problem)
                    if one is not None and one not in found[-1:]:
                        found.append(one)  # it is offline, and must not be mistaken for one that was never created
        return found

    # -- deleted topics -----------------------------------------------------------------------------------------------

    async def _retire(self, hosted: HostedTopic) -> None:
        self._partitions.remove_topic(hosted.name)
        self._topic_metrics.remove(hosted.name)
        await self._release(hosted.partitions.values())

    async def _release(self, partitions: Collection[Partition]) -> None:
        """Return when nothing uses the logs of these partitions any more."""
        self._replicas.drop(partitions)
        await self._moves.release(partitions)
        await self._replicas.settled()
        for partition in partitions:
            await self._syncing.finish_with(partition)
        await self._cleaning.give_up(partitions)

    async def _remove_left(self, topic: TopicImage) -> None:
        """Remove the logs of partitions whose replica is no longer on this broker, even if it was moved while the
        broker was down. This relies on the image only: the same topic has the partition, and this broker is not among
        its replicas. A partition whose log is in an offline directory is forgotten: if it is assigned to this broker
        again, it gets a new log.
        """
        elsewhere = [index for index, state in enumerate(topic.partitions) if self._broker_id not in state.replicas]
        left = {
            index: one
            for index in elsewhere
            if (one := self._logs.get(TopicPartition(topic.name, index))) is not None and one.topic_id == topic.topic_id
        }
        hosted = self._partitions.by_name.get(topic.name)
        if hosted is not None and hosted.topic_id == topic.topic_id:
            await self._forget_left(hosted, elsewhere)
        if not left:
            return
        log.info("replicas have left this broker", topic=topic.name, partitions=sorted(left))
        try:
            await self._threads.run_blocking(self._logs.delete, [one.topic_partition for one in left.values()])
        except StorageFailure as failure:
            self._failures.log_directory_failed(failure)
        except Refused as refusal:
            log.warning("logs of reassigned replicas cannot be removed yet", reason=refusal.message)

    async def _forget_left(self, hosted: HostedTopic, elsewhere: Collection[int]) -> None:
        gone = [hosted.partitions.pop(index) for index in elsewhere if index in hosted.partitions]
        if not gone and hosted.offline.isdisjoint(elsewhere):
            return
        for kept in (hosted.offline, hosted.unseen, hosted.lost):
            kept.difference_update(elsewhere)
        await self._release(gone)
        if not hosted.partitions and not hosted.offline:
            self._partitions.remove_topic(hosted.name)
            self._topic_metrics.remove(hosted.name)

    async def _remove_deleted(self, image: ClusterImage) -> None:
        due = {
            deleted.topic_id
            for deleted in image.deleted_topics.values()
            if self._broker_id in deleted.brokers and deleted.topic_id not in self._removed
        }
        if not due:
            return
        self._removal_is_due = False
        doomed = [one.topic_partition for one in self._logs.logs.values() if one.topic_id in due]
        try:
            await self._threads.run_blocking(self._logs.delete, doomed)
        except StorageFailure as failure:
            self._failures.log_directory_failed(failure)
            return
        except Refused as refusal:
            log.warning("deleted logs cannot be removed yet", reason=refusal.message)
            self._removal_is_due = True
            return
        if self._places.away or any(directory.offline is not None for directory in self._logs.directories):
            # Some logs may be in a directory that cannot be read. The removal is reported after a start that can read
            # all.
            return
        self._removed |= due
        # Not awaited: the response waits until this broker has applied the current change.
        self._tasks.spawn(self._report(tuple(due)), name="report of removed logs")

    async def _report(self, topic_ids: tuple[uuid.UUID, ...]) -> None:
        try:
            await self._controller.submit(LogsRemoved(self._broker_id, topic_ids))
        except Refused as refusal:
            log.info("removed logs will be reported with the next change or start", reason=refusal.message)
        self._removed -= set(topic_ids)
