"""Moves replicas between the log directories of this broker, as Kafka's ReplicaAlterLogDirsManager (KIP-113).

A moving replica is copied to the other directory (storage/future_logs.py). Records are read and checked in a thread and
appended on the event loop, as a follower does it. When the copy is complete, it replaces the log within one turn of the
loop, so that clients notice nothing. Leaders and followers are moved in the same way.

Rules:
- `num.replica.alter.log.dirs.threads` replicas are moved at a time, the others wait. All moves together stay within
  `replica.alter.log.dirs.io.max.bytes.per.second`.
- A move ends early if it is cancelled, if the partition leaves this broker, or if one of the directories fails.
- A move continues after a restart.
- A log is not compacted while it is moved.
"""

import asyncio
import contextlib
import functools
from collections.abc import Callable, Collection, Mapping
from typing import Final

from kaspar.base.clock import Clock
from kaspar.base.errors import ErrorCode, KasparError, Refused, StorageFailure
from kaspar.base.ids import TopicPartition
from kaspar.base.log import get_log
from kaspar.broker.cleaning.log_cleaner import Cleaning
from kaspar.broker.partitions import Partitions
from kaspar.broker.replication.fetcher_manager import ReplicaFetcherManager
from kaspar.broker.services import CurrentSettings, Failures, Tasks, Threads
from kaspar.broker.syncing import Syncing
from kaspar.config.kinds import MAX_INT
from kaspar.metadata.images import ImageSource
from kaspar.replication.partition import Partition
from kaspar.replication.quota import ReplicationQuota
from kaspar.storage import WOULD_BLOCK, FetchedBatches, Log, LogManager, UnexpectedAppendOffset

log = get_log(__name__)

SHORT_PAUSE_S: Final = 0.02
RETRY_PAUSE_S: Final = 1.0
"""The pause after an error such as a full disk."""
COPIED_ON_LOOP_BYTES: Final = 1024 * 1024
"""Before a log is replaced, up to this many remaining bytes are copied within one turn of the event loop."""
SYNCS_SIDE_BY_SIDE: Final = 5
"""How often the copy of a log that is synced all the time is synced, before syncs of the log itself are held back."""


class _Move:
    """The move of one replica. `ended` is set when nothing is copied any more."""

    def __init__(self, partition: Partition, future: Log) -> None:
        self.partition = partition
        self.current = partition.log
        self.future = future
        self.cancelled = asyncio.Event()
        self.ended = asyncio.Event()
        self.attempts = 0

    @property
    def path(self) -> str:
        return self.future.directory.path

    def is_truncating(self) -> bool:
        return self.current.truncating

    @property
    def is_over(self) -> bool:
        """Whether the move can no longer be completed."""
        return (
            self.cancelled.is_set()
            or self.partition.offline
            or self.future.directory.offline is not None
            or self.current.deleted
            or self.future.deleted
        )

    async def pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.cancelled.wait()


class LogDirMoves:
    """Owned by the event loop."""

    def __init__(
        self,
        settings: CurrentSettings,
        *,
        images: ImageSource,
        partitions: Partitions,
        logs: LogManager,
        fetchers: ReplicaFetcherManager,
        cleaning: Cleaning,
        syncing: Syncing,
        clock: Clock,
        threads: Threads,
        tasks: Tasks,
        failures: Failures,
        moved: Callable[[Partition], None],
    ) -> None:
        """`moved` is called when the log of a partition is in another directory."""
        self._settings = settings
        self._images = images
        self._partitions = partitions
        self._logs = logs
        self._fetchers = fetchers
        self._cleaning = cleaning
        self._syncing = syncing
        self._clock = clock
        self._threads = threads
        self._tasks = tasks
        self._failures = failures
        self._moved = moved
        self._quota = ReplicationQuota()
        self._moves: dict[TopicPartition, _Move] = {}
        self._retiring: set[asyncio.Task[None]] = set()
        self._altering = asyncio.Lock()
        self._waiting: dict[TopicPartition, _Move] = {}
        """The moves that wait for others to end, in order."""
        self._is_stopping = False
        self.reconfigure()

    def __len__(self) -> int:
        return len(self._moves)

    def reconfigure(self) -> None:
        """Apply changed settings."""
        config = self._settings.config
        self._quota.limit_bytes_per_s = config.replica_alter_log_dirs_io_max_bytes_per_second
        self._quota.window_count = config.alter_log_dirs_replication_quota_window_num
        self._quota.window_ms = config.alter_log_dirs_replication_quota_window_size_seconds * 1000

    @property
    def max_lag(self) -> int:
        """The number of records that the copy furthest behind lacks. Can be called from any thread."""
        return max((_lag(move) for move in list(self._moves.values())), default=0)

    # -- requests ------------------------------------------------------------------------------------------------------

    async def alter(self, targets: Mapping[TopicPartition, str]) -> dict[TopicPartition, ErrorCode]:
        """Move replicas to these directories. A replica that is not on this broker yet will be created there."""
        async with self._altering:
            return {partition: await self._alter_one(partition, path) for partition, path in targets.items()}

    async def _alter_one(self, topic_partition: TopicPartition, path: str) -> ErrorCode:
        try:
            self._logs.futures.folder_for(self._logs.directories[0], topic_partition)  # refuses a name that is too long
            self._check_directory(path)
            partition = await self._partition_for(topic_partition, path)
            if partition.log.directory.path != path and topic_partition not in self._moves:
                await self._begin(partition, path)
        except Refused as refusal:
            log.warning("a replica cannot be moved", partition=topic_partition, path=path, reason=refusal.message)
            return refusal.code
        except StorageFailure as failure:
            self._failures.log_directory_failed(failure)
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NONE

    def _check_directory(self, path: str) -> None:
        directory = self._logs.directory(path)
        if directory is None:
            raise Refused(ErrorCode.LOG_DIR_NOT_FOUND, f"{path} is not in log.dirs")
        if directory.offline is not None:
            raise Refused(ErrorCode.KAFKA_STORAGE_ERROR, f"the log directory {path} is offline")
        cordoned = self._settings.config.cordoned_log_dirs
        if path in cordoned or "*" in cordoned:
            raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"the log directory {path} is cordoned")

    async def _partition_for(self, topic_partition: TopicPartition, path: str) -> Partition:
        """The partition, after cancelling a move of it to any directory other than `path`."""
        hosted = self._partitions.by_name.get(topic_partition.topic)
        partition = self._partitions.get(topic_partition)
        is_offline = partition is not None and partition.offline
        if is_offline or (hosted is not None and topic_partition.partition in hosted.offline):
            raise Refused(ErrorCode.KAFKA_STORAGE_ERROR, f"the log of {topic_partition} is not available")
        if partition is not None:
            move = self._moves.get(topic_partition)
            if move is not None and move.path != path:
                await self._cancel(move)
                await self._threads.run_blocking(self._logs.delete_future, topic_partition)
                log.info("a move to another log directory was cancelled", partition=topic_partition, path=move.path)
            return partition
        self._logs.prefer(topic_partition, path)
        topic = self._images.current.topics.get(topic_partition.topic)
        if topic is None or not 0 <= topic_partition.partition < len(topic.partitions):
            raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no {topic_partition}")
        raise Refused(ErrorCode.REPLICA_NOT_AVAILABLE, f"{topic_partition} is not on this broker")

    async def _begin(self, partition: Partition, path: str) -> None:
        if any(directory.offline is not None for directory in self._logs.directories):
            # The copy may exist in the offline directory.
            raise Refused(ErrorCode.KAFKA_STORAGE_ERROR, "a log directory is offline: replica moves are paused")
        one = partition.log
        future = await self._threads.run_blocking(self._logs.create_future, one, path, one.config)
        if partition.log is one and not one.deleted and self._partitions.get(partition.topic_partition) is partition:
            self._start(partition, future)

    # -- life of a move ------------------------------------------------------------------------------------------------

    def resume(self, partition: Partition) -> None:
        """Continue the move that an earlier process has begun, when its partition becomes hosted."""
        future = self._logs.futures.get(partition.topic_partition)
        if future is not None and partition.topic_partition not in self._moves:
            self._start(partition, future)

    def _start(self, partition: Partition, future: Log) -> None:
        if self._is_stopping:
            return
        move = self._moves[partition.topic_partition] = _Move(partition, future)
        self._waiting[partition.topic_partition] = move
        self._run_next()

    def _run_next(self) -> None:
        """Start waiting moves, up to the configured number at a time."""
        config = self._settings.config
        most = max(1, config.num_replica_alter_log_dirs_threads or len(config.log_dirs))
        while self._waiting and len(self._moves) - len(self._waiting) < most:
            topic_partition = next(iter(self._waiting))
            move = self._waiting.pop(topic_partition)
            log.info("moving a replica to another log directory", partition=topic_partition, path=move.path)
            self._tasks.spawn(self._run(move), name=f"move of {topic_partition}")

    async def release(self, partitions: Collection[Partition]) -> None:
        """Return when nothing is copied from the logs of these partitions any more."""
        moves = [self._moves[each.topic_partition] for each in partitions if each.topic_partition in self._moves]
        for move in moves:
            await self._cancel(move)
        if self._retiring:
            await asyncio.wait(self._retiring)

    async def stop(self) -> None:
        """Stop all moves; they continue after the next start. Safe to call twice."""
        self._is_stopping = True
        for move in tuple(self._moves.values()):
            await self._cancel(move)
        if self._retiring:
            await asyncio.wait(self._retiring)

    async def _cancel(self, move: _Move) -> None:
        move.cancelled.set()
        if self._waiting.pop(move.partition.topic_partition, None) is not None:
            self._end(move)
        await move.ended.wait()

    async def _run(self, move: _Move) -> None:
        try:
            await self._cleaning.pause(move.partition)
            try:
                await self._copy_and_swap(move)
            finally:
                self._cleaning.resume(move.partition)
        finally:
            self._end(move)
            if not self._is_stopping:
                self._run_next()

    def _end(self, move: _Move) -> None:
        del self._moves[move.partition.topic_partition]
        move.ended.set()

    async def _copy_and_swap(self, move: _Move) -> None:
        while not move.is_over:
            try:
                if await self._copy(move) and await self._try_swap(move):
                    return
            except StorageFailure as failure:
                self._failures.log_directory_failed(failure)
            except KasparError as problem:  # no space, perhaps; or the log was deleted, which ends the move
                log.warning("a move is waiting", partition=move.partition.topic_partition, reason=str(problem))
                await move.pause(RETRY_PAUSE_S)

    # -- copying -------------------------------------------------------------------------------------------------------

    async def _copy(self, move: _Move) -> bool:
        """Copy some records. Returns whether the copy has everything that the log had when this call began."""
        current, future = move.current, move.future
        if move.is_truncating():
            await move.pause(SHORT_PAUSE_S)
            return False
        offset, start = future.log_end_offset, current.log_start_offset
        if offset < start or future.truncation_due:  # the records to be copied next were deleted
            await self._restart(move, start)
            return False
        future.move_log_start_offset(start)
        if offset >= current.log_end_offset:
            return True
        if self._quota.is_exceeded(future.directory.steady_ms()):
            await move.pause(SHORT_PAUSE_S)
            return False
        truncations, end = current.local.truncations, current.log_end_offset
        if future.cold:
            future.warm_up(await self._threads.run_blocking(future.read_cold))
        fetched = await self._read(move, offset, end)
        if move.is_truncating() or current.local.truncations != truncations or move.is_over:
            return False
        self._append(move, fetched)
        return future.log_end_offset >= end

    async def _read(self, move: _Move, offset: int, end: int) -> FetchedBatches:
        """Read, in a thread, the records of the log that continue the copy."""
        size = self._settings.config.replica_fetch_max_bytes
        try:
            return await self._threads.run_blocking(_read_and_check, move.current, move.future, offset, size, end)
        except UnexpectedAppendOffset as problem:
            # The log starts within a batch, which DeleteRecords can cause: start the copy at the same offset.
            if not problem.continues_after:
                raise
            await self._restart(move, problem.first_offset)
            return await self._threads.run_blocking(_read_and_check, move.current, move.future, offset, size, end)

    async def _restart(self, move: _Move, offset: int) -> None:
        restart = functools.partial(self._logs.futures.restart_at, move.future, offset, now_ms=self._clock.now_ms())
        await self._threads.run_blocking(restart)

    def _append(self, move: _Move, fetched: FetchedBatches) -> None:
        if fetched.batches:
            move.future.append_fetched(fetched, now_ms=self._clock.now_ms())
            self._quota.record(fetched.size, move.future.directory.steady_ms())

    # -- the end -------------------------------------------------------------------------------------------------------

    async def _try_swap(self, move: _Move) -> bool:
        if move.attempts < SYNCS_SIDE_BY_SIDE:
            return await self._prepare_and_swap(move)
        await self._syncing.hold(move.partition)
        try:
            return self._copy_rest(move) and await self._prepare_and_swap(move)
        finally:
            self._syncing.release(move.partition)

    async def _prepare_and_swap(self, move: _Move) -> bool:
        current, future, partition = move.current, move.future, move.partition
        await self._threads.run_blocking(self._logs.futures.prepare, current, future)
        # From here on everything happens within one turn of the event loop.
        if not self._copy_rest(move):
            return False
        if future.recovery_point < current.recovery_point:
            move.attempts += 1
            return False
        self._logs.swap(current, future)  # if this fails, nothing has changed
        self._fetchers.drop([partition])
        partition.log_moved(future)
        self._fetchers.follow([partition])
        if partition.syncs_before_commit:
            self._syncing.ask(partition)
        log.info("a replica has moved to another log directory", partition=partition.topic_partition, path=move.path)
        retiring = asyncio.get_running_loop().create_task(self._retire(partition, current, future))
        self._retiring.add(retiring)
        retiring.add_done_callback(self._retiring.discard)
        self._moved(partition)
        return True

    def _copy_rest(self, move: _Move) -> bool:
        """Copy the remaining records without waiting for the disk. False if that is not possible."""
        current, future = move.current, move.future
        if move.is_over or move.is_truncating() or future.log_end_offset < current.log_start_offset:
            return False
        copied = 0
        while future.log_end_offset < current.log_end_offset:
            data = current.try_read(future.log_end_offset, COPIED_ON_LOOP_BYTES, current.log_end_offset)
            if data is WOULD_BLOCK or copied + len(data) > COPIED_ON_LOOP_BYTES:
                return False
            copied += len(data)
            self._append(move, future.check_fetched(data, leader_epoch=MAX_INT))
        return True

    async def _retire(self, partition: Partition, old: Log, new: Log) -> None:
        try:
            await self._threads.run_blocking(self._logs.retire, old, new)
        except StorageFailure as failure:
            self._failures.log_directory_failed(failure)
        except Refused as refusal:
            log.warning(
                "the old log of a moved replica will be removed later", folder=old.folder, reason=refusal.message
            )
        except Exception as problem:  # the edge of the task
            log.exception("a move failed because of a bug", partition=partition.topic_partition)
            self._failures.on_bug(problem)


def _lag(move: _Move) -> int:
    return max(0, move.current.log_end_offset - move.future.log_end_offset)


def _read_and_check(current: Log, future: Log, offset: int, size: int, end: int) -> FetchedBatches:
    return future.check_fetched(current.read(offset, size, end), leader_epoch=MAX_INT)
