"""In which log directory each partition of this broker is, and what is done about a log that is not where it was.

The metadata store has the directory of every replica (KIP-858). So a log that is gone is told from one that was never
made: it is not made anew, which would give its offsets to other records, and the partition answers
KAFKA_STORAGE_ERROR. An operator brings it back, or gives it up with `unclean.leader.election.enable`, as for any leader
that lacks committed records: it then begins empty, in a new leader epoch, by which readers notice.
"""

import asyncio
import uuid
from collections.abc import Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import Refused
from kaspar.base.ids import BrokerId, TopicPartition, uuid_to_text
from kaspar.base.log import get_log
from kaspar.broker.metrics import BrokerState
from kaspar.metadata import ClusterImage, PartitionImage, Store
from kaspar.metadata.directories import id_of_unread, known_directories, remember_directories, still_needed
from kaspar.metadata.events import AssignDirectories, LogsLost
from kaspar.metadata.store import StoreFull
from kaspar.storage import Expected, Log, LogManager

if TYPE_CHECKING:
    from kaspar.broker.server import Broker

log = get_log(__name__)

GATHERING_S: Final = 0.1
"""How long new logs wait for others, so that topics created one after the other are noted in one transaction."""

_WHAT_TO_DO = (
    "bring its folder back and start the broker again, or set unclean.leader.election.enable=true for the topic to "
    "give its records up and begin it anew, empty"
)


def expected_logs(image: ClusterImage, broker_id: BrokerId) -> Expected:
    """What a start may find in the log directories."""
    return Expected(
        topic_ids={name: topic.topic_id for name, topic in image.topics.items()},
        deleted=frozenset(image.deleted_topics),
        directories={
            TopicPartition(name, index): directory
            for name, topic in image.topics.items()
            for index, partition in enumerate(topic.partitions)
            if (directory := partition.directory_of(broker_id)) is not None
        },
    )


async def claim_directories(
    store: Store, image: ClusterImage, logs: LogManager, broker_id: BrokerId, *, trusted: bool
) -> dict[uuid.UUID, str]:
    """Take the log directories into use that the cluster knows, or all if they are `trusted`, and have it know them
    from now on. Those that it knows and that are not here, by their ids.
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
        log.warning("the log directories are not noted in the metadata store", reason=str(problem))
    return away


def _found_at_last(known: Mapping[uuid.UUID, str], logs: LogManager) -> set[uuid.UUID | None]:
    """The ids of directories that could not be read when the cluster first noted its directories."""
    formatted = logs.formatted_directories
    return {logs.directory_id(path) for one, path in known.items() if one == id_of_unread(path) and path in formatted}


class LogPlaces:
    def __init__(self, broker: "Broker") -> None:
        self.away: Mapping[uuid.UUID, str] = {}
        """The log directories that the cluster knows, and that are not here."""
        self._broker = broker
        self._unreported: dict[tuple[uuid.UUID, int], uuid.UUID] = {}
        self._is_reporting = False
        self._beginning_anew: set[uuid.UUID] = set()

    # -- what is where -----------------------------------------------------------------------------------------------

    def note(self, one: Log, topic_id: uuid.UUID, partition: PartitionImage) -> None:
        """A log is there: the cluster is to know in which directory."""
        directory = self._broker.logs.directory_id(one.directory.path)
        if directory is not None and directory != partition.directory_of(self._broker.broker_id):
            self._unreported[topic_id, one.topic_partition.partition] = directory

    def report(self) -> None:
        """Not awaited: the controller may be waiting for us."""
        if self._unreported and not self._is_reporting:
            self._is_reporting = True
            self._broker.spawn(self._report(), name="report of log directories")

    async def _report(self) -> None:
        try:
            await asyncio.sleep(GATHERING_S)
            await self.finish()
        finally:
            self._is_reporting = False

    async def finish(self) -> None:
        """Report what is not reported yet. What the controller does not take is for later, or for the next start."""
        while self._unreported:
            noted, self._unreported = self._unreported, {}
            places = tuple((topic_id, index, directory) for (topic_id, index), directory in noted.items())
            try:
                await self._broker.controller.submit(AssignDirectories(self._broker.broker_id, places))
            except Refused as refusal:
                log.info("log directories will be reported later", reason=refusal.message)
                self._unreported = {**noted, **self._unreported}
                return

    # -- what is not there -------------------------------------------------------------------------------------------

    def gone(self, topic: str, partitions: Mapping[int, PartitionImage]) -> tuple[set[int], set[int]]:
        """Those of a topic's partitions that must not get a new log although none is found: the unseen, whose log may
        be in a directory that is offline, and the lost. What is created while the broker runs is nowhere yet.
        """
        broker = self._broker
        offline = [directory.path for directory in broker.logs.directories if directory.offline is not None]
        unseen, lost = set(), set()
        for index, partition in partitions.items():
            place, one = partition.directory_of(broker.broker_id), TopicPartition(topic, index)
            if broker.logs.get(one) is not None:
                continue
            starting = broker.state is not BrokerState.RUNNING
            if place is None and not (starting and (offline or self.away or one in broker.logs.vanished)):
                continue
            if offline:
                unseen.add(index)
                reason = f"it may be in a log directory that is offline: {', '.join(offline)}"
            else:
                lost.add(index)
                reason = (
                    f"it was in {self._describe(one, place)}, and it is not found in any log directory: {_WHAT_TO_DO}"
                )
            log.error("a partition has no log", partition=one, reason=reason)
        return unseen, lost

    def _describe(self, partition: TopicPartition, directory: uuid.UUID | None) -> str:
        if directory is None and (vanished := self._broker.logs.vanished.get(partition)) is not None:
            return vanished
        if directory is None:
            return f"a log directory that is not in log.dirs any more, perhaps {', '.join(self.away.values())}"
        path = self._broker.logs.directory_ids.get(directory)
        if path is not None:
            return path
        place = f"the log directory with the id {uuid_to_text(directory)}"
        path = self.away.get(directory)
        if path is None:
            return f"{place}, whose path is not known"
        if path in self._broker.logs.directory_ids.values():
            return f"{place}, in whose place at {path} there is a new one"
        return f"{place} at {path}, which is not in log.dirs any more"

    def begin_anew(self, topic: str, topic_id: uuid.UUID, lost: Collection[int]) -> None:
        """Give lost logs up. Not awaited: the controller may be waiting for us."""
        if topic_id not in self._beginning_anew:
            self._beginning_anew.add(topic_id)
            self._broker.spawn(self._begin_anew(topic, topic_id, frozenset(lost)), name="lost logs begin anew")

    async def _begin_anew(self, topic: str, topic_id: uuid.UUID, lost: frozenset[int]) -> None:
        try:
            places = tuple((topic_id, index) for index in sorted(lost))
            await self._broker.controller.submit(LogsLost(self._broker.broker_id, places))
        except Refused as refusal:
            log.warning("lost logs stay as they are for now", topic=topic, reason=refusal.message)
        else:
            log.warning("lost logs begin anew, empty, in a new leader epoch", topic=topic, partitions=sorted(lost))
            await self._broker.hosting.make_lost(topic, topic_id, lost)
        finally:
            self._beginning_anew.discard(topic_id)
