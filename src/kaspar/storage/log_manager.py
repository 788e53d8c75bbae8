"""All logs of a broker, in all its log directories.

Life: `look` (locks, whose directories they are), `claim` (which may be used), or `open` for both; `load` (every
partition, with progress), then use, then `close`, which leaves a mark that nothing needs recovery. A directory that
fails goes offline with its partitions; the rest go on.

`get`, `logs`, `take_offline` and `expire_producers` are for the owner (the event loop). What touches the disk (`look`,
`claim`, `load`, `create`, `delete`, `checkpoint`, `maintain`, `close`) waits for it and is called in a thread, while
nobody else uses the partitions that it creates or deletes.
"""

import contextlib
import os
import resource
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

from kaspar.base.clock import Clock
from kaspar.base.errors import ErrorCode, Refused, StorageFailure
from kaspar.base.ids import Offset, TopicPartition, random_uuid, uuid_to_text
from kaspar.base.log import get_log
from kaspar.base.patient_clock import PatientClock
from kaspar.config import BrokerConfig, LogConfig
from kaspar.storage import checkpoints, folder_metadata
from kaspar.storage.file_names import (
    LOG_START_OFFSET_CHECKPOINT,
    META_PROPERTIES,
    RECOVERY_POINT_CHECKPOINT,
    REPLICATION_OFFSET_CHECKPOINT,
)
from kaspar.storage.files import DISK_FULL, Files, OsFiles, remove_folder
from kaspar.storage.log import Log
from kaspar.storage.log_directories import KnownIds, LogDirectories
from kaspar.storage.log_directory import LogDirectory
from kaspar.storage.log_loader import DirectoryLoader, LoadProgress
from kaspar.storage.open_files import ReadHandles, WriteHandles
from kaspar.storage.placement import NOTHING_KNOWN, Expected, FoundFolder, choose_folder
from kaspar.storage.retired_folders import RetiredFolders

log = get_log(__name__)

# Syncs that wait together are written together by the file system.
_CLOSING_THREADS = 16

ConfigOf = Callable[[str], LogConfig]


class LogManager:
    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        files: Files | None = None,
        *,
        most_open_files: int | None = None,
        lock_directories: bool = True,
    ) -> None:
        self._config = config
        self._clock = clock
        self._files = files or OsFiles()
        most = most_open_files or _share_of_open_files()
        self._readers = ReadHandles(self._files, most_files=most)
        self._writers = WriteHandles(most_files=most)
        self._directories = LogDirectories(
            self._files, self._readers, self._writers, clock.monotonic, lock=lock_directories
        )
        self._logs: dict[TopicPartition, Log] = {}
        self._retired = RetiredFolders()
        self.vanished: Mapping[TopicPartition, str] = {}
        """Where, by the checkpoints that were found at loading, a partition had a log, and has no folder."""
        self._changing = threading.Lock()
        self._checkpointing = threading.Lock()
        self._closed = False
        self.patient_clock = PatientClock(clock)
        """For what cannot be undone; from `load` on it remembers when a broker last ran here."""
        # The recovery points and log start offsets in the checkpoints of each directory.
        self._written_points: dict[str, dict[TopicPartition, int]] = {}
        self._written_starts: dict[str, dict[TopicPartition, int]] = {}

    # Life

    def open(self, cluster_id: str | None = None) -> str:
        """Lock every log directory and take it into use. The id of the cluster: stored, given, or a new one."""
        found = self.look()
        cluster_id = cluster_id or found or uuid_to_text(random_uuid())
        self.claim(cluster_id)
        return cluster_id

    def look(self) -> str | None:
        """Lock every log directory. The id of the cluster that they belong to, if any of them says so."""
        return self._directories.look(self._config.log_dirs, self._config.node_id)

    def claim(self, cluster_id: str, known: KnownIds = None, *, trusted: bool = True) -> None:
        """Take the directories into use that may be; the others go offline. See `LogDirectories`."""
        self._directories.claim(cluster_id, self._config.node_id, known, trusted=trusted)

    def load(
        self, config_of: ConfigOf, progress: LoadProgress | None = None, expected: Expected = NOTHING_KNOWN
    ) -> None:
        """Load every partition of every directory, several at a time. After a crash this reads what was not synced."""
        self.patient_clock = PatientClock(self._clock, self._last_checkpoint_ms())
        threads = self._config.num_recovery_threads_per_data_dir
        online = [directory for directory in self.directories if directory.offline is None]
        loaders = [
            DirectoryLoader(
                directory,
                config_of,
                now_ms=self._clock.now_ms(),
                progress=progress,
                deleted_topics=expected.deleted,
            )
            for directory in online
        ]
        found = {loader: loader.find() for loader in loaders}
        self.vanished = {
            partition: loader.directory.path
            for loader, partitions in found.items()
            for partition in loader.recovery_points.keys() - partitions
        }
        self._set_doubles_aside(found, expected)
        with ThreadPoolExecutor(threads * len(online), thread_name_prefix="log-recovery") as pool:
            loading = [(loader, loader.start(pool, partitions)) for loader, partitions in found.items()]
            for loader, futures in loading:
                for future in futures:
                    loaded = future.result()
                    if loaded is not None:
                        self._logs[loaded.topic_partition] = loaded
                self._take_over(loader)
        with contextlib.suppress(StorageFailure, Refused):  # the others go on without a directory that fails now
            self.checkpoint()
        self._drop_offline()
        self._give_up_what_checkpoints_overrate()
        self._directories.refuse_without_any()

    def _give_up_what_checkpoints_overrate(self) -> None:
        """Of a log that has lost synced records the recovery point goes back. Where a full disk keeps the old one in
        place, the next start would take for synced what is appended now.
        """
        for one in list(self._logs.values()):
            if one.directory.offline is None and self._written_point(one) > one.recovery_point:
                self.take_offline(one.directory.path, self._no_checkpoint(one.directory).message)

    def _take_over(self, loader: DirectoryLoader) -> None:
        """What the last broker here left to be removed, and the checkpoints that it wrote."""
        directory = loader.directory
        for folder in loader.folders_to_delete:
            self._retired.add_renamed(directory, folder)
        for partition in loader.of_deleted_topics:
            self._retired.add(directory, loader.folder_of(partition), partition)
        self._written_points[directory.path] = dict(loader.recovery_points)
        self._written_starts[directory.path] = dict(loader.log_start_offsets)

    def _set_doubles_aside(self, found: dict[DirectoryLoader, list[TopicPartition]], expected: Expected) -> None:
        """Where several directories have a partition, one has its log. KasparError if it cannot be told which."""
        loaders_of: dict[TopicPartition, list[DirectoryLoader]] = {}
        for loader, partitions in found.items():
            for partition in partitions:
                loaders_of.setdefault(partition, []).append(loader)
        for partition, loaders in loaders_of.items():
            if len(loaders) > 1:
                self._choose_one(partition, {loader: found[loader] for loader in loaders}, expected)

    def _choose_one(
        self, partition: TopicPartition, found: dict[DirectoryLoader, list[TopicPartition]], expected: Expected
    ) -> None:
        folders = {}
        for loader in found:
            try:
                topic_id = loader.topic_id(partition)
            except OSError as error:
                loader.fail(error, f"reading {loader.folder_of(partition)}")
                continue
            if topic_id is None or topic_id not in expected.deleted:
                directory_id = self.directory_id(loader.directory.path)
                folders[FoundFolder(loader.folder_of(partition), topic_id, directory_id)] = loader
        if len(folders) > 1:
            chosen = choose_folder(partition, list(folders), expected)
            for folder, loader in folders.items():
                if folder is not chosen:
                    found[loader].remove(partition)
                    # Where it cannot be renamed, it stays where it is and is not loaded.
                    with contextlib.suppress(Refused, StorageFailure):
                        self._retired.set_aside(loader.directory, folder.path, partition, f"its log is {chosen.path}")

    def _last_checkpoint_ms(self) -> int | None:
        found = []
        for directory in self.directories:
            with contextlib.suppress(OSError):
                found.append(self._files.modified_ms(os.path.join(directory.path, RECOVERY_POINT_CHECKPOINT)))
        return max(found, default=None)

    def close(self, broker_epoch: int = -1) -> None:
        """Stop cleanly. A directory where this fails is not marked, and is recovered at the next start. Safe twice."""
        logs = self._give_logs_up()
        for directory in self.directories:
            if directory.offline is None:
                mine = [each for each in logs if each.directory is directory]
                self._close_directory(directory, mine, broker_epoch)
        self._directories.release()

    def _close_directory(self, directory: LogDirectory, logs: list[Log], broker_epoch: int) -> None:
        try:
            with ThreadPoolExecutor(_CLOSING_THREADS) as pool:
                list(pool.map(Log.close, logs))
            self._write_checkpoints(directory, logs)
            folder_metadata.write_clean_shutdown(self._files, directory.path, broker_epoch)
        except (OSError, Refused, StorageFailure) as error:
            log.error("a log directory could not be stopped cleanly", directory=directory.path, error=error)
            for one in logs:
                one.abandon()

    def abandon(self) -> None:
        """Let go of everything and write nothing, as a crash would. Safe to call twice, and after `close`."""
        for one in self._give_logs_up():
            one.abandon()
        self._directories.release()

    def _give_logs_up(self) -> list[Log]:
        """All of them. A checkpoint that another thread writes is waited for, and none is begun any more: it would know
        of no log.
        """
        with self._checkpointing:
            self._closed = True
            logs, self._logs = self._logs, {}
        return list(logs.values())

    def reconfigure(self, config: BrokerConfig) -> None:
        """Take over the settings that may change while the broker runs. For the owner."""
        self._config = config

    # Partitions

    @property
    def logs(self) -> Mapping[TopicPartition, Log]:
        return self._logs

    def get(self, topic_partition: TopicPartition) -> Log | None:
        return self._logs.get(topic_partition)

    def create(self, topic_partition: TopicPartition, topic_id: uuid.UUID, config: LogConfig) -> Log:
        """A new partition, in the directory that has the fewest. StorageFailure if that directory fails."""
        with self._changing:
            if topic_partition in self._logs:
                raise Refused(ErrorCode.TOPIC_ALREADY_EXISTS, f"there is a log of {topic_partition} already")
            directory = self._emptiest_directory()
            folder = os.path.join(directory.path, str(topic_partition))
            self._check_mounted(directory)
            self._clear_the_way(directory, folder, topic_partition)
            try:
                self._files.mkdir(folder)
                folder_metadata.write_partition_metadata(self._files, folder, topic_id)
                created = Log.create(directory, folder, topic_partition, topic_id, config, now_ms=self._clock.now_ms())
            except OSError as error:
                with contextlib.suppress(OSError):
                    remove_folder(self._files, folder)
                raise directory.fail(error, f"creating {topic_partition}") from error
            self._logs[topic_partition] = created
            return created

    def _check_mounted(self, directory: LogDirectory) -> None:
        """A log that is made at the path of a directory whose volume is gone would not be found again."""
        try:
            self._files.size(os.path.join(directory.path, META_PROPERTIES))
        except OSError as error:
            raise directory.fail(error, f"looking for {META_PROPERTIES}") from error

    def _clear_the_way(self, directory: LogDirectory, folder: str, topic_partition: TopicPartition) -> None:
        """Nothing of an earlier log may become a part of a new one: no file of it, and nothing that checkpoints say."""
        self._retired.clear_the_way(directory, folder, topic_partition)
        if self._is_written(directory, topic_partition):
            self.checkpoint()
            if self._is_written(directory, topic_partition):
                raise self._no_checkpoint(directory)

    def _is_written(self, directory: LogDirectory, topic_partition: TopicPartition) -> bool:
        written = (self._written_points, self._written_starts)
        return any(topic_partition in offsets.get(directory.path, {}) for offsets in written)

    def adopt(self, one: Log, topic_id: uuid.UUID) -> None:
        """Say whose a log is whose folder does not tell: the broker crashed while it made it, or topics had no ids."""
        try:
            folder_metadata.write_partition_metadata(self._files, one.folder, topic_id)
        except OSError as error:
            raise one.directory.fail(error, f"writing the topic id of {one.topic_partition}") from error
        one.topic_id = topic_id

    def _emptiest_directory(self) -> LogDirectory:
        cordoned = self._config.cordoned_log_dirs
        usable = {
            directory.path: directory
            for directory in self.directories
            if directory.offline is None and directory.path not in cordoned and "*" not in cordoned
        }
        counts = dict.fromkeys(usable, 0)
        if not counts:
            raise Refused(ErrorCode.KAFKA_STORAGE_ERROR, "no log directory takes new partitions")
        for one in list(self._logs.values()):
            if one.directory.path in counts:
                counts[one.directory.path] += 1
        return usable[min(counts, key=counts.__getitem__)]

    def delete(self, partitions: Iterable[TopicPartition]) -> None:
        """Take partitions out of use: their folders are renamed now and removed by `maintain` later.

        What cannot be renamed, for want of space perhaps, is tried again by every later call. Until none is left, each
        call raises the first failure.
        """
        with self._changing:
            for partition in partitions:
                removed = self._logs.pop(partition, None)
                if removed is not None:
                    removed.delete()
                    self._retired.add(removed.directory, removed.folder, partition)
            failure = self._retired.rename_all()
        self.checkpoint()
        if failure is not None:
            raise failure

    def expire_producers(self, at_most: int) -> Iterator[int]:
        """Forget idle producers of every partition: how many, each time that `at_most` were looked at, or somewhat
        more. Whoever goes through it may do something else in between.
        """
        now = self.patient_clock.moment()
        expiration_ms = self._config.producer_id_expiration_ms
        looked_at = forgotten = 0
        for one in list(self._logs.values()):
            slice_size = min(at_most, 1 + len(one.producers.entries))
            for number in one.expire_producers(now, expiration_ms, at_most):
                looked_at += slice_size
                forgotten += number
                if looked_at >= at_most:
                    yield forgotten
                    looked_at = forgotten = 0
        yield forgotten

    def maintain(self, now_ms: int) -> None:
        """Write what logs have yet to write, and remove files and folders whose time to wait is over, by the steady
        clock.
        """
        for one in list(self._logs.values()):
            if one.directory.offline is None:
                try:
                    one.maintain(now_ms)
                except (OSError, Refused) as error:
                    log.warning("old files could not be removed", folder=one.folder, error=error)
        self._retired.remove_due(now_ms, self._config.log_segment_delete_delay_ms)

    # Directories

    @property
    def directories(self) -> list[LogDirectory]:
        return self._directories.all

    @property
    def directory_ids(self) -> dict[uuid.UUID, str]:
        """The paths of the directories that can be used, by their ids."""
        return self._directories.ids

    @property
    def formatted_directories(self) -> list[str]:
        return self._directories.formatted

    def directory_id(self, path: str) -> uuid.UUID | None:
        return self._directories.id_of(path)

    def space(self, path: str) -> tuple[int, int]:
        """All bytes of a directory's file system, and those that can still be used."""
        return self._files.space(path)

    def take_offline(self, path: str, reason: str) -> list[Log]:
        """A directory has failed: its partitions are given up, and returned. Only the owner calls this."""
        directory = self._directories.find(path)
        if directory is None:
            return []
        if directory.offline is None:
            directory.take_offline(reason)
        log.error("a log directory is offline", directory=path, reason=directory.offline)
        return self._drop_offline()

    def _drop_offline(self) -> list[Log]:
        dropped = [one for one in list(self._logs.values()) if one.directory.offline is not None]
        for one in dropped:
            del self._logs[one.topic_partition]
            one.abandon()
        return dropped

    # Checkpoints

    def checkpoint(self) -> None:
        """Write down, for every directory, how far its logs are synced and where they begin.

        One that fails keeps no other from being written; the first failure is raised at the end. On a full disk the old
        checkpoints stay, with a warning: `start_is_written` tells.
        """
        failure: StorageFailure | Refused | None = None
        with self._checkpointing:
            logs = list(self._logs.values())
            for directory in [] if self._closed else self.directories:
                if directory.offline is None:
                    try:
                        self._guarded(directory, [one for one in logs if one.directory is directory])
                    except (StorageFailure, Refused) as problem:
                        failure = failure or problem
        if failure is not None:
            raise failure

    def start_is_written(self, one: Log, offset: int) -> bool:
        """Whether the last checkpoint has the log begin at `offset` or later, so that no crash brings back what is
        below. Never waits.
        """
        return self._written_starts.get(one.directory.path, {}).get(one.topic_partition, 0) >= offset

    def secure(self, one: Log, offset: int) -> None:
        """Sync a log up to `offset`, where a segment begins, and write that down: a start takes it for whole.

        What is being appended to is not synced, for that could hold up whoever appends.
        """
        if min(self._written_point(one), one.recovery_point) >= offset:
            return
        if one.recovery_point < offset:
            one.flush(offset)
        self.checkpoint()
        if self._written_point(one) < offset:
            raise self._no_checkpoint(one.directory)

    def truncate_to(self, one: Log, offset: int, *, now_ms: int) -> bool:
        """Drop every record of a log at or above `offset`, durably. False if there is none.

        That these offsets are no longer synced is written down before one of them is given to another record: a start
        goes by it, and would take the new record for whole. Where that is refused, ask again before appending.
        """
        is_cut = one.truncate_to(offset, now_ms=now_ms)
        self.checkpoint()  # also where nothing is left to cut, for it may have failed the last time
        if not 0 <= self._written_point(one) <= one.recovery_point:
            raise self._no_checkpoint(one.directory)
        return is_cut

    @staticmethod
    def _no_checkpoint(directory: LogDirectory) -> Refused:
        return Refused(ErrorCode.KAFKA_STORAGE_ERROR, f"no checkpoint could be written in {directory.path}")

    def _written_point(self, one: Log) -> int:
        return self._written_points.get(one.directory.path, {}).get(one.topic_partition, -1)

    def _guarded(self, directory: LogDirectory, logs: list[Log]) -> None:
        try:
            self._write_checkpoints(directory, logs)
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise directory.fail(error, "writing checkpoints") from error
            log.warning("no space is left for checkpoints: the old ones stay", directory=directory.path)

    def _write_checkpoints(self, directory: LogDirectory, logs: list[Log]) -> None:
        points = {one.topic_partition: one.recovery_point for one in logs}
        # Also where the first segment begins there: its name may not be durable yet.
        starts = {one.topic_partition: one.log_start_offset for one in logs if one.log_start_offset > 0}
        checkpoints.write_offsets(self._files, directory.path, RECOVERY_POINT_CHECKPOINT, points)
        # The next start goes by it. The system would note its own time, which may be one that is not believed.
        path = os.path.join(directory.path, RECOVERY_POINT_CHECKPOINT)
        self._files.set_modified_ms(path, self.patient_clock.now_ms())
        self._written_points[directory.path] = points
        checkpoints.write_offsets(self._files, directory.path, LOG_START_OFFSET_CHECKPOINT, starts)
        self._written_starts[directory.path] = starts

    def read_high_watermarks(self) -> dict[TopicPartition, Offset]:
        """What the last broker on these directories knew as high watermarks, for the partitions that are here."""
        found: dict[TopicPartition, Offset] = {}
        for directory in self.directories:
            if directory.offline is None:
                try:
                    found |= checkpoints.read_offsets(self._files, directory.path, REPLICATION_OFFSET_CHECKPOINT)
                except checkpoints.DamagedCheckpoint as error:
                    log.warning("high watermarks are not known", directory=directory.path, error=error)
        return {partition: offset for partition, offset in found.items() if partition in self._logs}

    def write_high_watermarks(self, offsets: Mapping[TopicPartition, int]) -> None:
        with self._checkpointing:
            for directory in [] if self._closed else self.directories:
                if directory.offline is None:
                    mine = {
                        partition: offset
                        for partition, offset in offsets.items()
                        if (one := self._logs.get(partition)) is not None and one.directory is directory
                    }
                    try:
                        checkpoints.write_offsets(self._files, directory.path, REPLICATION_OFFSET_CHECKPOINT, mine)
                    except OSError as error:
                        raise directory.fail(error, "writing high watermarks") from error


def _share_of_open_files() -> int:
    """A quarter of what the process may open, for reading and as much for writing: the rest is for connections."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(16, min(soft // 4, 4096))
