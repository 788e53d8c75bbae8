"""All logs of a broker, in all its log directories.

Life cycle: `look` (lock the directories and read their identity), `claim` (decide which may be used), or `open` for
both; `load` (every partition, with progress); then use; then `close`, which marks that no recovery is needed. A
directory that fails goes offline with its partitions; the others continue.

`get`, `logs`, `take_offline` and `expire_producers` are for the owner (the event loop). Methods that may block on disk
I/O (`look`, `claim`, `load`, `create`, `delete`, `truncate_to`, `checkpoint`, `maintain`, `close`) are called in a
thread, while nobody else uses the partitions that they create, delete or truncate.
"""

import contextlib
import functools
import os
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
from kaspar.storage import truncation
from kaspar.storage.directories import folder_metadata
from kaspar.storage.directories.log_directories import KnownIds, LogDirectories
from kaspar.storage.directories.log_directory import LogDirectory
from kaspar.storage.directories.placement import NOTHING_KNOWN, Expected
from kaspar.storage.directories.retired_folders import RetiredFolders
from kaspar.storage.disk.file_names import META_PROPERTIES
from kaspar.storage.disk.files import Files, OsFiles, remove_folder
from kaspar.storage.future_logs import FutureLogs
from kaspar.storage.log import Log
from kaspar.storage.offset_checkpoints import OffsetCheckpoints
from kaspar.storage.recovery.directory_loader import DirectoryLoader, LoadProgress
from kaspar.storage.recovery.duplicates import leave_out_of_date_folders, set_duplicates_aside
from kaspar.storage.recovery.new_log import create_log
from kaspar.storage.segments.open_files import ReadHandles, WriteHandles, share_of_open_files

log = get_log(__name__)

_MOST_PREFERRED = 100_000
# The file system combines the writes of syncs that wait at the same time.
_CLOSING_THREADS = 16

ConfigOf = Callable[[str], LogConfig]
WhenTruncated = Callable[[Mapping[Log, int]], None]
"""Called with the offsets that logs were truncated to."""
Failures = dict[TopicPartition, StorageFailure | Refused]


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
        most = most_open_files or share_of_open_files()
        self._readers = ReadHandles(self._files, most_files=most)
        self._writers = WriteHandles(most_files=most)
        self._directories = LogDirectories(
            self._files, self._readers, self._writers, clock.monotonic, lock=lock_directories
        )
        self._logs: dict[TopicPartition, Log] = {}
        self._retired = RetiredFolders()
        self.futures = FutureLogs(self._retired)
        """Logs that are being moved to another directory."""
        self._preferred: dict[TopicPartition, str] = {}
        self.vanished: Mapping[TopicPartition, str] = {}
        """The directory of each partition that `load` found in a checkpoint, but that has no folder there."""
        self._changing = threading.Lock()
        self.patient_clock = PatientClock(clock)
        """For decisions that cannot be undone; from `load` on it knows when a broker last ran here."""
        self._checkpoints = OffsetCheckpoints()
        self._when_truncated: list[WhenTruncated] = []

    # Life cycle

    def open(self, cluster_id: str | None = None) -> str:
        """Lock and claim every log directory. Returns the cluster id: the given, the stored, or a new one."""
        found = self.look()
        cluster_id = cluster_id or found or uuid_to_text(random_uuid())
        self.claim(cluster_id)
        return cluster_id

    def look(self) -> str | None:
        """Lock every log directory. Returns the id of the cluster that they belong to, if one is stored."""
        return self._directories.look(self._config.log_dirs, self._config.node_id)

    def claim(self, cluster_id: str, known: KnownIds = None, *, trusted: bool = True) -> None:
        """Decide which directories may be used; the others go offline. See `LogDirectories`."""
        self._directories.claim(cluster_id, self._config.node_id, known, trusted=trusted)

    def load(
        self, config_of: ConfigOf, progress: LoadProgress | None = None, expected: Expected = NOTHING_KNOWN
    ) -> None:
        """Load every partition of every directory, several at a time. After a crash this reads what was not synced."""
        last_written_ms = OffsetCheckpoints.last_written_ms(self.directories)
        if last_written_ms is not None:
            self.patient_clock.start_from(last_written_ms)
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
        set_duplicates_aside(found, expected, self.directory_id, self._retired)
        leave_out_of_date_folders(found, expected, self.directories, self.directory_id)
        with ThreadPoolExecutor(threads * len(online), thread_name_prefix="log-recovery") as pool:
            loading = [(loader, loader.start(pool, partitions)) for loader, partitions in found.items()]
            for loader, futures in loading:
                for future in futures:
                    loaded = future.result()
                    if loaded is not None:
                        self._logs[loaded.topic_partition] = loaded
                self._adopt_leftovers(loader)
        for loader in loaders:
            self.futures.load(loader, self._logs, now_ms=self._clock.now_ms())
        with contextlib.suppress(StorageFailure, Refused):  # the others continue if a directory fails now
            self.checkpoint()
        self._drop_offline()
        self._drop_logs_behind_checkpoints()
        self._directories.refuse_without_any()

    def _drop_logs_behind_checkpoints(self) -> None:
        """Take directories offline where the checkpoint has a higher recovery point than the log.

        The recovery point of a log that has lost synced records moves back. If a full disk keeps the old one in the
        checkpoint, the next start would trust what is appended now.
        """
        for one in self._all():
            if one.directory.offline is None and self._checkpoints.recovery_point(one) > one.recovery_point:
                self.take_offline(one.directory.path, self._no_checkpoint(one.directory).message)

    def _adopt_leftovers(self, loader: DirectoryLoader) -> None:
        """Adopt the folders that the previous broker left to be removed, and the checkpoints that it wrote."""
        directory = loader.directory
        for folder in loader.folders_to_delete:
            self._retired.add_renamed(directory, folder)
        for partition in loader.of_deleted_topics:
            self._retired.add(directory, loader.folder_of(partition), partition)
        self._checkpoints.found(directory, loader.recovery_points, loader.log_start_offsets)

    def close(self, broker_epoch: int = -1) -> None:
        """Shut down cleanly. A directory that fails is not marked, and the next start recovers it. Safe to call
        twice.
        """
        logs = self._release_logs()
        for directory in self.directories:
            if directory.offline is None:
                mine = [each for each in logs if each.directory is directory]
                self._close_directory(directory, mine, broker_epoch)
        self._directories.release()

    def _close_directory(self, directory: LogDirectory, logs: list[Log], broker_epoch: int) -> None:
        try:
            with ThreadPoolExecutor(_CLOSING_THREADS) as pool:
                list(pool.map(Log.close, logs))
            self._checkpoints.write_at_shutdown(directory, logs, now_ms=self.patient_clock.now_ms())
            folder_metadata.write_clean_shutdown(self._files, directory.path, broker_epoch)
        except (OSError, Refused, StorageFailure) as error:
            log.error("a log directory could not be closed cleanly", directory=directory.path, error=error)
            for one in logs:
                one.abandon()

    def abandon(self) -> None:
        """Release everything without writing, as in a crash. Safe to call twice, and after `close`."""
        for one in self._release_logs():
            one.abandon()
        self._directories.release()

    def _release_logs(self) -> list[Log]:
        """Release all logs, after a checkpoint that is being written has finished: a later one would contain no log."""
        self._checkpoints.close()
        logs, self._logs = self._logs, {}
        return [*logs.values(), *self.futures.release()]

    def reconfigure(self, config: BrokerConfig) -> None:
        """Apply the settings that may change while the broker runs. For the owner."""
        self._config = config

    # Partitions

    @property
    def logs(self) -> Mapping[TopicPartition, Log]:
        return self._logs

    def get(self, topic_partition: TopicPartition) -> Log | None:
        return self._logs.get(topic_partition)

    def _all(self) -> list[Log]:
        """All logs, including copies that are being moved here from another directory."""
        return [*self._logs.values(), *self.futures.all]

    def prefer(self, topic_partition: TopicPartition, path: str) -> None:
        """Create the log in that directory if it is created before this broker stops. Owner only."""
        self._preferred.pop(topic_partition, None)
        self._preferred[topic_partition] = path
        if len(self._preferred) > _MOST_PREFERRED:
            del self._preferred[next(iter(self._preferred))]

    def create(self, topic_partition: TopicPartition, topic_id: uuid.UUID, config: LogConfig) -> Log:
        """Create a partition in the directory that is preferred for it or has the fewest. StorageFailure if it
        fails.
        """
        with self._changing:
            if topic_partition in self._logs:
                raise Refused(ErrorCode.TOPIC_ALREADY_EXISTS, f"a log of {topic_partition} already exists")
            directory = self._preferred_directory(topic_partition) or self._emptiest_directory()
            folder = os.path.join(directory.path, str(topic_partition))
            self.futures.delete([topic_partition])
            created = self._logs[topic_partition] = self._create(directory, folder, topic_partition, topic_id, config)
            return created

    def create_future(self, current: Log, path: str, config: LogConfig) -> Log:
        """Create an empty log in another directory, to become a copy of `current`. StorageFailure if that directory
        fails.
        """
        directory = self._directories.find(path)
        assert directory is not None, path
        assert current.topic_id is not None, current.folder
        partition = current.topic_partition
        with self._changing:
            folder = self.futures.folder_for(directory, partition)
            created = self._create(directory, folder, partition, current.topic_id, config)
            self.futures.add(created)
            return created

    def _create(
        self,
        directory: LogDirectory,
        folder: str,
        topic_partition: TopicPartition,
        topic_id: uuid.UUID,
        config: LogConfig,
    ) -> Log:
        self._check_mounted(directory)
        self._clear_the_way(directory, folder, topic_partition)
        try:
            self._files.mkdir(folder)
            folder_metadata.write_partition_metadata(self._files, folder, topic_id)
            return create_log(directory, folder, topic_partition, topic_id, config, now_ms=self._clock.now_ms())
        except OSError as error:
            with contextlib.suppress(OSError):
                remove_folder(self._files, folder)
            raise directory.fail(error, f"creating {topic_partition}") from error

    def swap(self, current: Log, future: Log) -> None:
        """Make the copy in another directory the current log. Owner only; `FutureLogs` has the rules."""
        self.futures.swap(current, future)
        self._logs[current.topic_partition] = future

    def retire(self, old: Log, new: Log) -> None:
        """Delete the old log, in the directory that the partition has left. Called after `swap`."""
        self.futures.retire(old, new)
        self.checkpoint()

    def delete_future(self, topic_partition: TopicPartition) -> None:
        """Cancel the move of a log to another directory."""
        with self._changing:
            self.futures.delete([topic_partition])
        self.checkpoint()

    def _check_mounted(self, directory: LogDirectory) -> None:
        """Take the directory offline if its volume is not mounted: a log created there would not be found again."""
        try:
            self._files.size(os.path.join(directory.path, META_PROPERTIES))
        except OSError as error:
            raise directory.fail(error, f"looking for {META_PROPERTIES}") from error

    def _clear_the_way(self, directory: LogDirectory, folder: str, topic_partition: TopicPartition) -> None:
        """Remove all traces of an earlier log, so that no file and no checkpoint entry becomes part of a new one."""
        self._retired.clear_the_way(directory, folder, topic_partition)
        if self._checkpoints.name(directory, topic_partition):
            self.checkpoint()
            if self._checkpoints.name(directory, topic_partition):
                raise self._no_checkpoint(directory)

    def adopt(self, one: Log, topic_id: uuid.UUID) -> None:
        """Write the topic id of a log that has none: the broker crashed while creating it, or topics had no ids yet."""
        try:
            folder_metadata.write_partition_metadata(self._files, one.folder, topic_id)
        except OSError as error:
            raise one.directory.fail(error, f"writing the topic id of {one.topic_partition}") from error
        one.topic_id = topic_id

    def _preferred_directory(self, topic_partition: TopicPartition) -> LogDirectory | None:
        path = self._preferred.pop(topic_partition, None)
        directory = None if path is None else self._directories.find(path)
        return directory if directory is not None and directory.offline is None else None

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
        for one in self._all():
            if one.directory.path in counts:
                counts[one.directory.path] += 1
        return usable[min(counts, key=counts.__getitem__)]

    def delete(self, partitions: Iterable[TopicPartition]) -> None:
        """Delete partitions: their folders are renamed now and removed by `maintain` later.

        A folder that cannot be renamed, perhaps because the disk is full, is retried by every later call, which raises
        the first failure.
        """
        doomed = list(partitions)
        with self._changing:
            self.futures.delete(doomed)
            for partition in doomed:
                removed = self._logs.pop(partition, None)
                if removed is not None:
                    removed.delete()
                    self._retired.add(removed.directory, removed.folder, partition)
            failure = self._retired.rename_all()
        self.checkpoint()
        if failure is not None:
            raise failure

    def expire_producers(self, at_most: int) -> Iterator[int]:
        """Forget idle producers of every partition. Yields how many, after every `at_most` producers or somewhat more,
        so that the caller can do other work in between.
        """
        now = self.patient_clock.moment()
        expiration_ms = self._config.producer_id_expiration_ms
        looked_at = forgotten = 0
        for one in list(self._logs.values()):
            if one.truncating:
                continue
            slice_size = min(at_most, 1 + len(one.producers.entries))
            for number in one.expire_producers(now, expiration_ms, at_most):
                looked_at += slice_size
                forgotten += number
                if looked_at >= at_most:
                    yield forgotten
                    looked_at = forgotten = 0
        yield forgotten

    def maintain(self, now_ms: int) -> None:
        """Write producer snapshots, and remove files and folders whose delay has passed on the steady clock."""
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
        """The paths of the usable directories, by id."""
        return self._directories.ids

    def directory(self, path: str) -> LogDirectory | None:
        return self._directories.find(path)

    @property
    def formatted_directories(self) -> list[str]:
        return self._directories.formatted

    def directory_id(self, path: str) -> uuid.UUID | None:
        return self._directories.id_of(path)

    def space(self, path: str) -> tuple[int, int]:
        """The size of a directory's file system in bytes, and how much of it is still available."""
        return self._files.space(path)

    def take_offline(self, path: str, reason: str) -> list[Log]:
        """Drop the partitions of a directory that has failed, and return them. Owner only."""
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
        self.futures.drop_offline(dropped)
        return dropped

    # Checkpoints

    def checkpoint(self) -> None:
        """Write the recovery points and log start offsets of every directory.

        A directory that fails does not keep the others from being written; the first failure is raised at the end. On a
        full disk the old checkpoints stay, with a warning: `start_is_written` reports it.
        """
        self._checkpoint(self.directories)

    def _checkpoint(self, directories: Iterable[LogDirectory]) -> None:
        self._checkpoints.write(directories, self._all(), now_ms=self.patient_clock.now_ms())

    def start_is_written(self, one: Log, offset: int) -> bool:
        """Whether the log start offset in the last checkpoint is `offset` or later, so that no crash brings back
        records below it. Never blocks.
        """
        return self._checkpoints.log_start_offset(one) >= offset

    def secure(self, one: Log, offset: int) -> None:
        """Sync a log up to `offset`, the base offset of a segment, and write a checkpoint, so that a start trusts it.

        The active segment is not synced, since that could delay appends.
        """
        if min(self._checkpoints.recovery_point(one), one.recovery_point) >= offset:
            return
        if one.recovery_point < offset:
            one.flush(offset)
        self._checkpoint([one.directory])
        if self._checkpoints.recovery_point(one) < offset:
            raise self._no_checkpoint(one.directory)

    @staticmethod
    def _no_checkpoint(directory: LogDirectory) -> Refused:
        return Refused(ErrorCode.KAFKA_STORAGE_ERROR, f"no checkpoint could be written in {directory.path}")

    # Truncation

    def truncate_to(self, offsets: Mapping[TopicPartition, int], *, now_ms: int) -> Failures:
        """Remove every record at or above the given offset of each partition, durably.

        Checkpoints that no longer count these offsets as synced are written before the call returns: a start would
        otherwise trust what is appended there next. A partition that fails does not keep the others from being
        truncated. The failures are returned: these partitions take no appends until they are truncated again
        (`Log.truncation_due`).
        """
        return self._truncate(offsets, functools.partial(truncation.truncate_to, now_ms=now_ms))

    def truncate_fully_and_start_at(self, offsets: Mapping[TopicPartition, int], *, now_ms: int) -> Failures:
        """Remove every record of each partition, durably; its log continues, empty, at the given offset. Checkpoints
        and failures as in `truncate_to`.
        """
        return self._truncate(offsets, functools.partial(truncation.truncate_fully_and_start_at, now_ms=now_ms))

    def when_truncated(self, call: WhenTruncated) -> None:
        """Call `call` after truncations, before anything is appended."""
        self._when_truncated.append(call)

    def _truncate(self, offsets: Mapping[TopicPartition, int], truncate: Callable[[Log, int], object]) -> Failures:
        failures: Failures = {}
        logs: dict[Log, int] = {}
        for partition, offset in offsets.items():
            one = self._logs.get(partition)
            if one is None:
                message = f"this broker has no log of {partition}"
                failures[partition] = Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
                continue
            logs[one] = offset
            try:
                truncate(one, offset)
            except (StorageFailure, Refused) as failure:
                failures[partition] = failure
        self.futures.truncate(logs, now_ms=self._clock.now_ms())
        # Also if nothing was removed: the checkpoint may have failed the last time. `_check_written` finds failures.
        with contextlib.suppress(StorageFailure, Refused):
            self._checkpoint({one.directory.path: one.directory for one in logs}.values())
        for call in self._when_truncated:
            with contextlib.suppress(StorageFailure, Refused):
                call(logs)
        for one in logs:
            try:
                self._check_written(one)
            except (StorageFailure, Refused) as failure:
                one.local.truncation_due = True
                failures.setdefault(one.topic_partition, failure)
        return failures

    def _check_written(self, one: Log) -> None:
        one.directory.check_online()
        if not self._checkpoints.are_valid_for(one):
            raise self._no_checkpoint(one.directory)

    # High watermarks

    def read_high_watermarks(self) -> dict[TopicPartition, Offset]:
        """The high watermarks that the previous broker on these directories wrote, for the partitions that are here."""
        found = self._checkpoints.read_high_watermarks(self.directories)
        return {partition: offset for partition, offset in found.items() if partition in self._logs}

    def write_high_watermarks(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._checkpoints.write_high_watermarks(self.directories, list(self._logs.values()), offsets)
