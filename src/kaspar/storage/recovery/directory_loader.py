"""Loads the partitions of one log directory, each in a thread of a pool."""

import os
import threading
import uuid
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass

from kaspar.base.errors import StorageFailure
from kaspar.base.ids import Offset, TopicPartition
from kaspar.base.log import get_log
from kaspar.config import LogConfig
from kaspar.storage.directories import folder_metadata
from kaspar.storage.directories.log_directory import LogDirectory
from kaspar.storage.disk import checkpoints
from kaspar.storage.disk.file_names import (
    CLEANER_OFFSET_CHECKPOINT,
    CLUSTER_METADATA_FOLDER,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    parse_future,
    parse_mark,
    parse_partition,
)
from kaspar.storage.log import Log
from kaspar.storage.recovery.log_recovery import KnownOffsets, load_log

log = get_log(__name__)


@dataclass(frozen=True, slots=True)
class Loaded:
    """The progress of loading a directory."""

    directory: str
    clean: bool
    partitions: int
    partitions_done: int
    bytes_checked: int


LoadProgress = Callable[[Loaded], None]


class DirectoryLoader:
    def __init__(
        self,
        directory: LogDirectory,
        config_of: Callable[[str], LogConfig],
        *,
        now_ms: int,
        progress: LoadProgress | None,
        deleted_topics: Collection[uuid.UUID] = (),
    ) -> None:
        self.directory = directory
        self.folders_to_delete: list[str] = []
        """Folders that are already marked for deletion."""
        self.of_deleted_topics: list[TopicPartition] = []
        """Partitions of deleted topics: they are not loaded, and their folders are not marked for deletion yet."""
        self.futures: dict[TopicPartition, list[str]] = {}
        """Folders of logs that were being moved here from another directory."""
        self.recovery_points: dict[TopicPartition, Offset] = {}
        self.log_start_offsets: dict[TopicPartition, Offset] = {}
        self._deleted_topics = deleted_topics
        self._config_of = config_of
        self._now_ms = now_ms
        self._progress = progress
        self._counting = threading.Lock()
        self._clean = False
        self._has_points = False
        self._is_new = True
        self._partitions = 0
        self._done = 0
        self._bytes_checked = 0

    def find(self) -> list[TopicPartition]:
        """List the partitions that have a folder here. Changes nothing, except that a clean shutdown's mark is
        removed.
        """
        files, path = self.directory.files, self.directory.path
        try:
            names = files.listdir(path)
            points = self._read(RECOVERY_POINT_CHECKPOINT)
            self._is_new = RECOVERY_POINT_CHECKPOINT not in names
            self._has_points = points is not None and not self._is_new
            self.recovery_points = points or {}
            self.log_start_offsets = self._read(LOG_START_OFFSET_CHECKPOINT) or {}
            self._read(
                CLEANER_OFFSET_CHECKPOINT, may_be_empty=True
            )  # refuses an unknown version before anything is changed
            self._clean = folder_metadata.take_clean_shutdown(files, path)
        except OSError as error:
            self.fail(error, "reading the directory")
            return []
        partitions = []
        for name in sorted(names):
            mark = parse_mark(name)
            if mark == "delete":
                self.folders_to_delete.append(os.path.join(path, name))
            elif mark == "future" and (partition := parse_future(name)) is not None:
                self.futures.setdefault(partition, []).append(os.path.join(path, name))
            elif mark is not None:
                log.warning("ignored a folder that is marked as not in use", folder=name, mark=mark)
            elif name != CLUSTER_METADATA_FOLDER and (partition := parse_partition(name)) is not None:
                partitions.append(partition)
        return partitions

    def start(self, pool: Executor, partitions: Sequence[TopicPartition]) -> list[Future[Log | None]]:
        """Load the partitions; each future returns a log, or None for a deleted topic or if the directory went offline
        meanwhile. A directory that a broker has used is reported even if it has no partition: a crash may have removed
        the folder of one.
        """
        self._partitions = len(partitions)
        if not self._is_new:
            self._report()
        if partitions:
            log.info("loading partitions", directory=self.directory.path, partitions=len(partitions), clean=self._clean)
        return [pool.submit(self._load, partition) for partition in partitions]

    def _read(self, name: str, *, may_be_empty: bool = False) -> dict[TopicPartition, Offset] | None:
        try:
            return checkpoints.read_offsets(self.directory.files, self.directory.path, name, may_be_empty=may_be_empty)
        except checkpoints.DamagedCheckpoint as error:
            log.warning("a checkpoint is damaged and counts as empty", error=error)
            return None

    def _load(self, partition: TopicPartition) -> Log | None:
        if self.directory.offline is not None:
            return None
        folder = self.folder_of(partition)
        try:
            topic_id = self.topic_id(partition)
            if topic_id is not None and self.is_deleted(topic_id):
                self.of_deleted_topics.append(partition)
                return None
        except OSError as error:
            self.fail(error, f"loading {folder}")
            return None
        loaded = self.load_folder(partition, folder, topic_id)
        if loaded is not None:
            self._report(partitions=1)
        return loaded

    def load_folder(self, partition: TopicPartition, folder: str, topic_id: uuid.UUID | None) -> Log | None:
        """Load the log in a folder. None if the directory fails, which takes it offline."""
        known = KnownOffsets(
            self.recovery_points.get(partition),
            self.log_start_offsets.get(partition),
            self._clean,
            self._has_points,
        )
        try:
            return load_log(
                self.directory,
                folder,
                partition,
                topic_id,
                self._config_of(partition.topic),
                known,
                now_ms=self._now_ms,
                progress=self._checked,
            )
        except StorageFailure:
            return None
        except OSError as error:
            self.fail(error, f"loading {folder}")
            return None

    def is_deleted(self, topic_id: uuid.UUID) -> bool:
        return topic_id in self._deleted_topics

    def folder_of(self, partition: TopicPartition) -> str:
        return os.path.join(self.directory.path, str(partition))

    def topic_id(self, partition: TopicPartition, folder: str | None = None) -> uuid.UUID | None:
        """Read the topic id in a partition's folder. The caller handles OSError."""
        try:
            return folder_metadata.read_partition_metadata(
                self.directory.files, self.folder_of(partition) if folder is None else folder
            )
        except checkpoints.DamagedCheckpoint as error:
            log.warning("the topic id of a partition is unknown", error=error)
            return None

    def fail(self, error: OSError, doing: str) -> None:
        log.error("a log directory cannot be loaded", directory=self.directory.path, error=error)
        self.directory.take_offline(f"{error} while {doing}")

    def _checked(self, size: int) -> None:
        self._report(size=size)

    def _report(self, *, partitions: int = 0, size: int = 0) -> None:
        with self._counting:
            self._done += partitions
            self._bytes_checked += size
            state = Loaded(self.directory.path, self._clean, self._partitions, self._done, self._bytes_checked)
            if self._progress is not None:
                self._progress(state)
