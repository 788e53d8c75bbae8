"""The log cleaner on the event loop's side: which logs it may clean, its threads, and compaction on request.

Rules:
- Without compacted logs a broker has no cleaner: its threads and its code are loaded when they are needed.
- Threads (`thread.py`) read old segments and write new ones. State that the event loop owns changes on the loop: last
  stable offsets are copied, segments are replaced and results are recorded there.
- Before a log is taken away (because its topic is deleted or the broker stops), threads must stop using it. A cleaning
  under way is given up at its next step, which leaves the log as it was.
- Dynamic settings apply at once. Only a reduced number of threads interrupts a cleaning.
"""

import concurrent.futures
import importlib
import time
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar

from kaspar.base.clock import Clock
from kaspar.base.errors import ErrorCode, Refused, StorageFailure
from kaspar.base.ids import TopicPartition
from kaspar.base.log import get_log
from kaspar.broker.partitions import Partitions
from kaspar.broker.services import CurrentSettings, Failures, Tasks, Threads
from kaspar.config import BrokerConfig
from kaspar.config.kinds import MAX_DOUBLE
from kaspar.replication.partition import Partition
from kaspar.storage import Log, LogManager

if TYPE_CHECKING:
    from kaspar.broker.cleaning.jobs import CleanerJobs, Compaction, LogsToClean
    from kaspar.broker.cleaning.thread import CleanerThread
    from kaspar.storage.cleaning.cleaner import Cleaned, CleanerSettings
    from kaspar.storage.cleaning.manager import LogCleanerManager

log = get_log(__name__)
T = TypeVar("T")

STOP_WITHIN_S: Final = 20.0
SPACE_MAY_RETURN_AFTER_S: Final = 15.0
"""How long a log waits that could not be cleaned because the disk was full."""
LEAST_BACKOFF_MS: Final = 100
"""The lower bound of `log.cleaner.backoff.ms`, because without a pause threads would search for logs all the time."""


@dataclass(slots=True)
class CleanerTotals:
    """Counts since the start, over all logs."""

    runs: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    records_removed: int = 0


def is_compacted(one: Log) -> bool:
    return "compact" in one.config.cleanup_policy


class Cleaning:
    """Owned by the event loop. Methods that threads may call say so."""

    def __init__(
        self,
        settings: CurrentSettings,
        *,
        partitions: Partitions,
        logs: LogManager,
        clock: Clock,
        threads: Threads,
        tasks: Tasks,
        failures: Failures,
    ) -> None:
        self.totals = CleanerTotals()
        self.cleaner_threads: list[CleanerThread] = []
        self._leaving: list[CleanerThread] = []
        self._settings = settings
        self._partitions = partitions
        self._logs = logs
        self._clock = clock
        self._threads = threads
        self._tasks = tasks
        self._failures = failures
        self._jobs: CleanerJobs | None = None
        self._running = False
        self._abandoned = False
        self._records_removed: Counter[TopicPartition] = Counter()
        self._requested: dict[TopicPartition, int] = {}
        self._no_space_until: dict[TopicPartition, tuple[float, str]] = {}
        self._paused: set[TopicPartition] = set()

    @property
    def manager(self) -> "LogCleanerManager | None":
        """None until the cleaner is needed."""
        return None if self._jobs is None else self._jobs.manager

    # -- starting, changing, stopping ---------------------------------------------------------------------------------

    def start(self) -> None:
        self._running = True
        self.topics_changed(tuple(self._partitions.by_name))

    def topics_changed(self, topics: Collection[str]) -> None:
        """Topics were added, removed or reconfigured: start the cleaner if it is needed now."""
        if self._running and self._jobs is None and self._switched_on() and self._any_compacted(topics):
            self._tasks.spawn(self._begin_unasked(), name="start of the log cleaner")

    def reconfigure(self) -> None:
        """Apply changed settings."""
        if not self._running:
            return
        if self._jobs is not None:
            self._jobs.throttle.bytes_per_second = _rate(self._settings.config)
            self._adjust_threads(self._jobs)
            self.wake()
        else:
            self.topics_changed(tuple(self._partitions.by_name))

    def _switched_on(self) -> bool:
        config = self._settings.config
        return config.log_cleaner_enable and config.log_cleaner_threads > 0

    def _any_compacted(self, topics: Collection[str]) -> bool:
        hosted = (self._partitions.by_name.get(topic) for topic in topics)
        return any(is_compacted(one.log) for each in hosted if each is not None for one in each.partitions.values())

    async def _begin(self) -> "CleanerJobs | None":
        """Start the cleaner. Its code is imported in a thread, because that takes 20 ms. None if the broker stops
        meanwhile.
        """
        await self._threads.run_blocking(importlib.import_module, "kaspar.broker.cleaning.thread")
        from kaspar.broker.cleaning.jobs import CleanerJobs
        from kaspar.storage.cleaning.manager import LogCleanerManager
        from kaspar.storage.cleaning.throttle import Throttle

        if self._jobs is None and self._running:
            throttle = Throttle(_rate(self._settings.config), self._clock)
            self._jobs = CleanerJobs(LogCleanerManager(self._logs), throttle)
            self._adjust_threads(self._jobs)
        return self._jobs

    async def _begin_unasked(self) -> None:
        await self._begin()

    def _adjust_threads(self, jobs: "CleanerJobs") -> None:
        from kaspar.broker.cleaning.thread import CleanerThread

        wanted = self._settings.config.log_cleaner_threads
        surplus, self.cleaner_threads = self.cleaner_threads[wanted:], self.cleaner_threads[:wanted]
        for thread in surplus:
            thread.ask_to_stop()
        self._leaving = [thread for thread in self._leaving if thread.is_alive()] + surplus
        for number in range(len(self.cleaner_threads), wanted):
            thread = CleanerThread(number, self, jobs)
            self.cleaner_threads.append(thread)
            thread.start()

    def wake(self) -> None:
        for thread in self.cleaner_threads:
            thread.wake()

    async def stop(self) -> None:
        """Give up the cleanings under way, and wait for the threads. Safe to call twice."""
        self._running = False
        threads = self._leaving + self.cleaner_threads
        self._leaving, self.cleaner_threads = [], []
        for thread in threads:
            thread.ask_to_stop()
        deadline = time.monotonic() + STOP_WITHIN_S
        for thread in threads:
            await self._threads.run_blocking(thread.join, max(0.0, deadline - time.monotonic()))
            if thread.is_alive():
                self._abandoned = True
                log.error("a cleaner thread did not stop; its results will be ignored", thread=thread.name)

    async def give_up(self, partitions: Collection[Partition]) -> None:
        """Return when no thread uses these logs any more. Called when the broker no longer hosts them, so none will
        again.
        """
        if self._jobs is None:
            return
        gone = {partition.topic_partition: partition.log for partition in partitions}
        for topic_partition in gone:
            self._requested.pop(topic_partition, None)
            self._no_space_until.pop(topic_partition, None)
            self._records_removed.pop(topic_partition, None)
        await self._threads.run_blocking(self._jobs.take_away, gone)

    async def pause(self, partition: Partition) -> None:
        """Return when no thread uses this log, and do not clean it until `resume`: it is being moved to another
        directory. Forgets which part of it is clean.
        """
        self._paused.add(partition.topic_partition)
        if self._jobs is not None:
            await self._threads.run_blocking(self._jobs.take_away, {partition.topic_partition: partition.log})

    def resume(self, partition: Partition) -> None:
        self._paused.discard(partition.topic_partition)
        self.wake()

    # -- called by the threads ----------------------------------------------------------------------------------------

    def settings(self) -> "CleanerSettings":
        """The settings of one thread. The configured memory is shared by all threads. Called by threads."""
        from kaspar.storage.cleaning.cleaner import CleanerSettings

        config = self._settings.config
        count = max(1, config.log_cleaner_threads)
        return CleanerSettings(
            dedupe_buffer_size=config.log_cleaner_dedupe_buffer_size // count,
            io_buffer_size=config.log_cleaner_io_buffer_size // count // 2,
            io_buffer_load_factor=config.log_cleaner_io_buffer_load_factor,
        )

    @property
    def backoff_ms(self) -> int:
        return max(LEAST_BACKOFF_MS, self._settings.config.log_cleaner_backoff_ms)

    @property
    def backoff_s(self) -> float:
        return self.backoff_ms / 1000

    def now_ms(self) -> int:
        """By the patient clock (base/patient_clock.py), because what cleaning removes cannot be restored."""
        return self._logs.patient_clock.now_ms()

    def wall_ms(self) -> int:
        """By the wall clock, which sets the deadlines for removing tombstones."""
        return self._clock.now_ms()

    def logs_to_clean(self) -> "LogsToClean":
        """Called by threads."""
        return self._on_loop(self._logs_to_clean)

    def may_continue(self, one: Log) -> bool:
        """Whether the log is still here to be compacted. Called by threads, often."""
        partition = self._partitions.get(one.topic_partition)
        return (
            partition is not None
            and partition.may_change(one)
            and not partition.offline
            and is_compacted(one)
            and one.topic_partition not in self._paused
        )

    def on_owner(self, one: Log, action: Callable[[], None]) -> None:
        """Run an action on the loop that only the owner of a log may do, and wait for it. Called by threads."""
        from kaspar.storage.cleaning.errors import CleaningStopped

        def act() -> None:
            if one.truncating:
                raise CleaningStopped(f"{one.topic_partition} is being truncated")
            action()

        self._on_loop(act)

    def cleaned(self, one: Log, result: "Cleaned") -> None:
        """Count the results of a cleaning. Called by threads."""
        self._on_loop(lambda: self._count(one, result))

    def no_space(self, one: Log, refusal: Refused) -> None:
        """Retry the log later, because the disk is full. That is no failure of the directory. Called by threads."""
        self._on_loop(lambda: self._wait_for_space(one, refusal))

    def directory_failed(self, failure: StorageFailure) -> None:
        """Called by threads."""
        self._on_loop(lambda: self._failures.log_directory_failed(failure))

    def on_bug(self, problem: Exception) -> None:
        """Called by threads."""
        self._on_loop(lambda: self._failures.on_bug(problem))

    def _on_loop(self, work: Callable[[], T]) -> T:
        """Run this on the event loop, and wait for its result."""
        from kaspar.storage.cleaning.errors import CleaningStopped

        done: concurrent.futures.Future[T] = concurrent.futures.Future()

        def run() -> None:
            try:
                done.set_result(work())
            except BaseException as problem:
                done.set_exception(problem)

        if self._abandoned:
            raise CleaningStopped("the broker has stopped")
        try:
            self._threads.call_on_loop(run)
        except RuntimeError as closed:
            raise CleaningStopped("the broker has stopped") from closed
        return done.result()

    # -- on the loop, for the threads ---------------------------------------------------------------------------------

    def _logs_to_clean(self) -> "LogsToClean":
        from kaspar.broker.cleaning.jobs import LogsToClean

        now = self._clock.monotonic()
        for topic_partition in [each for each, (until, _) in self._no_space_until.items() if until <= now]:
            del self._no_space_until[topic_partition]
        stable: dict[TopicPartition, int] = {}
        on_request: list[Log] = []
        for hosted in self._partitions.by_name.values():
            for partition in hosted.partitions.values():
                one = partition.log
                is_waiting = one.topic_partition in self._no_space_until or one.topic_partition in self._paused
                if is_compacted(one) and not partition.offline and not is_waiting:
                    stable[one.topic_partition] = partition.last_stable_offset
                    if one.topic_partition in self._requested:
                        on_request.append(one)
        return LogsToClean(stable, on_request)

    def _count(self, one: Log, result: "Cleaned") -> None:
        statistics = result.statistics
        self.totals.runs += 1
        self.totals.bytes_read += statistics.bytes_read
        self.totals.bytes_written += statistics.bytes_written
        self.totals.records_removed += statistics.records_removed
        if self.may_continue(one):
            self._records_removed[one.topic_partition] += statistics.records_removed
            if result.next_dirty_offset >= self._requested.get(one.topic_partition, -1):
                self._requested.pop(one.topic_partition, None)

    def _wait_for_space(self, one: Log, refusal: Refused) -> None:
        wait_s = max(SPACE_MAY_RETURN_AFTER_S, self.backoff_s)
        self._no_space_until[one.topic_partition] = (self._clock.monotonic() + wait_s, refusal.message)
        log.warning(
            "a log cannot be cleaned now; it will be retried",
            partition=one.topic_partition,
            reason=refusal.message,
            seconds=wait_s,
        )

    # -- compaction on request ----------------------------------------------------------------------------------------

    async def compact(self, partition: Partition, target_offset: int) -> "Compaction":
        """Compact a partition up to an offset, or as far as is possible now (-1), whatever its dirty ratio. Returns at
        once; another call returns the progress. Raises Refused if the partition cannot be compacted.
        """
        one = partition.log
        self._check_compactable(one)
        jobs = self._jobs or await self._begin()
        if jobs is None:
            raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, "the broker stops")
        stable = partition.last_stable_offset
        if target_offset < 0 and stable > one.segments.base_offsets[-1]:
            # The active segment is never cleaned, so its records can only be cleaned after it is rolled.
            one.roll(now_ms=self._clock.now_ms())
        progress = await self._threads.run_blocking(
            jobs.progress, one, target_offset, stable, self.now_ms(), self.may_continue
        )
        requested = self._requested.get(one.topic_partition, -1)
        if progress.first_dirty_offset < progress.target_offset > requested and self.may_continue(one):
            self._requested[one.topic_partition] = progress.target_offset
            self.wake()
        return replace(progress, records_removed=self._records_removed[one.topic_partition])

    def _check_compactable(self, one: Log) -> None:
        if not self._switched_on() or not self._running:
            raise Refused(
                ErrorCode.INVALID_CONFIG,
                "the log cleaner of this broker is disabled: set log.cleaner.enable=true and log.cleaner.threads to "
                "at least 1, and restart the broker",
            )
        if one.topic_partition in self._paused:
            raise Refused(
                ErrorCode.REASSIGNMENT_IN_PROGRESS, f"{one.topic_partition} is being moved to another log directory"
            )
        if not is_compacted(one):
            topic = one.topic_partition.topic
            raise Refused(
                ErrorCode.POLICY_VIOLATION,
                f"cleanup.policy of {topic} is {','.join(one.config.cleanup_policy) or 'empty'}, so it is not "
                "compacted. To change that: kafka-configs --bootstrap-server HOST:PORT --alter --entity-type topics "
                f"--entity-name {topic} --add-config cleanup.policy=compact",
            )
        if (waits := self._no_space_until.get(one.topic_partition)) is not None:
            raise Refused(ErrorCode.KAFKA_STORAGE_ERROR, f"{waits[1]}; it will be retried")


def _rate(config: BrokerConfig) -> float:
    rate = config.log_cleaner_io_max_bytes_per_second
    return float("inf") if rate >= MAX_DOUBLE else max(rate, 1.0)
