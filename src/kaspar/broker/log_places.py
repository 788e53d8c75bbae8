"""Which log directory each partition of this broker is in, and what happens when a log is missing from it.

The metadata store has the directory of every replica (KIP-858), so a missing log is distinguished from one that was
never created. It is not recreated, because its offsets would then be given to other records, and requests for the
partition get KAFKA_STORAGE_ERROR. An operator restores it, or gives it up with `unclean.leader.election.enable`, as for
any leader that lacks committed records. It is then recreated empty, in a new leader epoch, by which consumers notice.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from typing import Final, TypeAlias

from kaspar.base.errors import Refused
from kaspar.base.ids import BrokerId, TopicPartition, uuid_to_text
from kaspar.base.log import get_log
from kaspar.broker.services import Tasks
from kaspar.controller.channel import ControllerChannel
from kaspar.controller.events import AssignDirectories, DirectoriesFailed, LogsLost
from kaspar.metadata import ClusterImage, PartitionImage, Store
from kaspar.metadata.directories import id_of_unread, known_directories, remember_directories, still_needed
from kaspar.metadata.store import StoreFull
from kaspar.storage import Expected, Log, LogManager

log = get_log(__name__)

GATHERING_S: Final = 0.1
"""How long a report waits for more, so that topics created one after the other are stored in one transaction."""

AGAIN_S: Final = 1.0
"""How long to wait before a failed directory is reported again."""

Recreate: TypeAlias = Callable[[str, uuid.UUID, Collection[int]], Awaitable[None]]
"""Called with the topic, its id, and the partitions whose logs were given up."""

_WHAT_TO_DO = (
    "restore its folder and restart the broker, or set unclean.leader.election.enable=true for the topic to give up "
    "its records and recreate it empty"
)


def expected_logs(image: ClusterImage, broker_id: BrokerId, away: Mapping[uuid.UUID, str]) -> Expected:
    """The logs that a start expects in the log directories. `away`: directories that are known but not present."""
    return Expected(
        topic_ids={name: topic.topic_id for name, topic in image.topics.items()},
        deleted=frozenset(image.deleted_topics),
        directories={
            TopicPartition(name, index): directory
            for name, topic in image.topics.items()
            for index, partition in enumerate(topic.partitions)
            if (directory := partition.directory_of(broker_id)) is not None
        },
        away=away,
    )


def has_replicas(image: ClusterImage, broker_id: BrokerId) -> bool:
    """Whether the cluster knows of logs on this broker, including those that are to be removed."""
    return any(broker_id in deleted.brokers for deleted in image.deleted_topics.values()) or any(
        broker_id in partition.replicas for topic in image.topics.values() for partition in topic.partitions
    )


async def claim_directories(
    store: Store, image: ClusterImage, logs: LogManager, broker_id: BrokerId, *, trusted: bool
) -> dict[uuid.UUID, str]:
    """Use the log directories that the cluster knows, or all if they are `trusted`, and record them in the store.
    Returns the known directories that are not present: their paths by id.
    """
    known = await known_directories(store, broker_id)
    expected = None if known is None else {*known, *_found_at_last(known, logs)}
    await asyncio.to_thread(partial(logs.claim, image.cluster_id, expected, trusted=trusted))
    here = logs.directory_ids
    unusable = {directory.path for directory in logs.directories if directory.offline is not None}
    if known is None:
        known = {logs.directory_id(path) or id_of_unread(path): path for path in unusable}
    away = {
        directory: path
        for directory, path in still_needed(known, image, broker_id, unusable).items()
        if directory not in here and not (directory == id_of_unread(path) and path in here.values())
    }
    try:
        await remember_directories(store, broker_id, {**away, **here})
    except StoreFull as problem:
        log.warning("the log directories are not recorded in the metadata store", reason=str(problem))
    return away


def _found_at_last(known: Mapping[uuid.UUID, str], logs: LogManager) -> set[uuid.UUID | None]:
    """The ids of directories that can be read now, but could not when the cluster first recorded its directories."""
    formatted = logs.formatted_directories
    return {logs.directory_id(path) for one, path in known.items() if one == id_of_unread(path) and path in formatted}


class LogPlaces:
    def __init__(
        self,
        broker_id: BrokerId,
        logs: LogManager,
        *,
        controller: ControllerChannel,
        broker_epoch: Callable[[], int],
        tasks: Tasks,
        is_starting: Callable[[], bool],
    ) -> None:
        self.away: Mapping[uuid.UUID, str] = {}
        """The known log directories that are not present: their paths by id."""
        self._broker_id = broker_id
        self._logs = logs
        self._controller = controller
        self._broker_epoch = broker_epoch
        self._tasks = tasks
        self._is_starting = is_starting
        self._unreported: dict[tuple[uuid.UUID, int], uuid.UUID] = {}
        self._failed: set[uuid.UUID] = set()
        """Failed directories that the controller does not know of yet."""
        self._is_reporting = False
        self._giving_up: set[uuid.UUID] = set()

    # -- what is where -----------------------------------------------------------------------------------------------

    def note(self, one: Log, topic_id: uuid.UUID, partition: PartitionImage) -> None:
        """Note the directory of a log for the next report, unless the image has it."""
        directory = self._logs.directory_id(one.directory.path)
        if directory is not None and directory != partition.directory_of(self._broker_id):
            self._unreported[topic_id, one.topic_partition.partition] = directory

    def moved(self, one: Log, topic_id: uuid.UUID) -> None:
        """Report the new directory of a moved log. Done even if the image has it already, because an older report may
        be under way.
        """
        directory = self._logs.directory_id(one.directory.path)
        if directory is not None:
            self._unreported[topic_id, one.topic_partition.partition] = directory
            self.report()

    def failed(self, path: str) -> None:
        """Report that a log directory has failed, so that other brokers take over its leaderships."""
        directory = self._logs.directory_id(path)
        if directory is not None:
            self._failed.add(directory)
            self.report()

    def report(self) -> None:
        """Start a report in the background. It is not awaited, because the response waits until this broker has applied
        the image, which it may be doing now.
        """
        if (self._unreported or self._failed) and not self._is_reporting:
            self._is_reporting = True
            self._tasks.spawn(self._report(), name="report of log directories")

    async def _report(self) -> None:
        try:
            await asyncio.sleep(GATHERING_S)
            await self.finish()
            while self._failed:
                await asyncio.sleep(AGAIN_S)
                await self.finish()
        finally:
            self._is_reporting = False

    async def finish(self) -> None:
        """Report what is not reported yet. What the controller refuses is reported later, or at the next start."""
        await self._report_failed()
        while self._unreported:
            noted, self._unreported = self._unreported, {}
            places = tuple((topic_id, index, directory) for (topic_id, index), directory in noted.items())
            try:
                await self._controller.submit(AssignDirectories(self._broker_id, places))
            except Refused as refusal:
                log.info("log directories will be reported later", reason=refusal.message)
                self._unreported = {**noted, **self._unreported}
                return

    async def _report_failed(self) -> None:
        failed = tuple(self._failed)
        if not failed:
            return
        try:
            await self._controller.submit(DirectoriesFailed(self._broker_id, self._broker_epoch(), failed))
        except Refused as refusal:
            log.warning("failed log directories will be reported again", reason=refusal.message)
        else:
            self._failed.difference_update(failed)

    # -- what is not there -------------------------------------------------------------------------------------------

    def gone(self, topic: str, partitions: Mapping[int, PartitionImage]) -> tuple[set[int], set[int]]:
        """The partitions of a topic that have no log here but must not get a new one: the unseen, whose log may be in
        an offline directory, and the lost. A topic created while the broker runs has no logs yet, and is neither.
        """
        offline = [directory.path for directory in self._logs.directories if directory.offline is not None]
        unseen, lost = set(), set()
        for index, partition in partitions.items():
            place, one = partition.directory_of(self._broker_id), TopicPartition(topic, index)
            if self._logs.get(one) is not None:
                continue
            starting = self._is_starting()
            if place is None and not (starting and (offline or self.away or one in self._logs.vanished)):
                continue
            if offline:
                unseen.add(index)
                reason = f"it may be in a log directory that is offline: {', '.join(offline)}"
            else:
                lost.add(index)
                reason = f"it was in {self._describe(one, place)}, and is not in any log directory now: {_WHAT_TO_DO}"
            log.error("a partition has no log", partition=one, reason=reason)
        return unseen, lost

    def _describe(self, partition: TopicPartition, directory: uuid.UUID | None) -> str:
        if directory is None and (vanished := self._logs.vanished.get(partition)) is not None:
            return vanished
        if directory is None:
            return f"a log directory that is no longer in log.dirs, perhaps {', '.join(self.away.values())}"
        path = self._logs.directory_ids.get(directory)
        if path is not None:
            return path
        place = f"the log directory with the id {uuid_to_text(directory)}"
        path = self.away.get(directory)
        if path is None:
            return f"{place}, whose path is unknown"
        if path in self._logs.directory_ids.values():
            return f"{place}, which was replaced at {path} by a new one"
        return f"{place} at {path}, which is no longer in log.dirs"

    def give_up(self, topic: str, topic_id: uuid.UUID, lost: Collection[int], recreate: Recreate) -> None:
        """Give up lost logs and then recreate them. Not awaited, for the same reason as `report`."""
        if topic_id not in self._giving_up:
            self._giving_up.add(topic_id)
            self._tasks.spawn(self._give_up(topic, topic_id, frozenset(lost), recreate), name="recreate lost logs")

    async def _give_up(self, topic: str, topic_id: uuid.UUID, lost: frozenset[int], recreate: Recreate) -> None:
        try:
            places = tuple((topic_id, index) for index in sorted(lost))
            reply = await self._controller.submit(LogsLost(self._broker_id, places))
        except Refused as refusal:
            log.warning("lost logs cannot be recreated now", topic=topic, reason=refusal.message)
        else:
            given_up = {index for _, index in reply}
            if given_up:
                partitions = sorted(given_up)
                log.warning("recreating lost logs, empty, in a new leader epoch", topic=topic, partitions=partitions)
                await recreate(topic, topic_id, given_up)
        finally:
            self._giving_up.discard(topic_id)
