"""The state of a log that is derived from its records: leader epochs and producers, kept in step with its segments.

After a crash this state may be behind the records: recovery reads what is missing from the log.
"""

from collections.abc import Iterable, Sequence

from kaspar.base.ids import TopicPartition
from kaspar.storage.directories.log_directory import LogDirectory
from kaspar.storage.disk.files import DISK_FULL
from kaspar.storage.leader_epochs import LeaderEpochCache
from kaspar.storage.producers import replay
from kaspar.storage.producers.snapshots import ProducerSnapshots
from kaspar.storage.producers.state import ProducerState
from kaspar.storage.segments.segment import Segment


class DerivedState:
    __slots__ = ("_directory", "_folder", "_topic_partition", "leader_epochs", "producers", "snapshots")

    def __init__(
        self,
        directory: LogDirectory,
        folder: str,
        topic_partition: TopicPartition,
        leader_epochs: LeaderEpochCache,
        producers: ProducerState,
        snapshot_offsets: Iterable[int],
    ) -> None:
        self._directory = directory
        self._folder = folder
        self._topic_partition = topic_partition
        self.leader_epochs = leader_epochs
        self.producers = producers
        self.snapshots = ProducerSnapshots(directory, folder, topic_partition, snapshot_offsets)

    def folder_renamed(self, folder: str) -> None:
        self._folder = folder
        self.snapshots.folder_renamed(folder)

    def rolled(self, base_offset: int) -> None:
        """A segment begins at `base_offset`: take a snapshot of the producer state up to there."""
        self.snapshots.take(base_offset, self.producers.taken())
        self.snapshots.write_if_small()

    def truncate_to(self, end: int, segments: Sequence[Segment]) -> None:
        """Restore the state as it was at `end`, after the log was truncated to this offset."""
        files = self._directory.files
        self.leader_epochs.truncate_from_end(end)
        self.snapshots.drop_above(end)
        self.snapshots.write()
        begin = replay.load_newest_snapshot(
            files, self._folder, self.snapshots.written, end, self.producers, segments[0].base_offset
        )
        replay.replay(files, segments, begin, end, self.producers)
        # Last, because a full disk may refuse it. The state in memory is correct then, and the next flush persists it.
        self.persist_leader_epochs()

    def persist_leader_epochs(self) -> None:
        try:
            self.leader_epochs.persist(self._directory.files, self._folder)
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise
            raise self._directory.fail(error, f"writing the leader epochs of {self._topic_partition}") from error

    def write_final_snapshot(self, end: int) -> bool:
        """Write the snapshot of a clean shutdown. Returns whether a file was added, so that its name must be synced."""
        added = end > 0 and end not in self.snapshots.written
        if added:
            self.snapshots.take(end, self.producers.taken())
        self.snapshots.write()
        return added
