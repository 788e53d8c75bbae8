"""The log cleaner on the event loop's side: which logs it may touch, its threads, its numbers, and `compact now`.

Rules:
- A broker without compacted logs has no cleaner: neither its threads nor its code are loaded before they are needed.
- Threads (`broker/cleaner_thread.py`) read old segments and write new ones. Whatever belongs to the loop is done by the
  loop: last stable offsets are copied there, segments are replaced there, results are written down there.
- Who takes a log away from the broker (a deleted topic, a stop) first waits until no thread looks at it any more; a
  cleaning under way is given up at its next step, which leaves the log as it was.
- Dynamic settings count at once. None of them interrupts a cleaning but fewer threads.
"""

import concurrent.futures
import importlib
import time
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar

from kaspar.base.errors import ErrorCode, Refused, StorageFailure
from kaspar.base.ids import TopicPartition
from kaspar.base.log import get_log
from kaspar.config import BrokerConfig
from kaspar.config.kinds import MAX_DOUBLE
from kaspar.replication.partition import Partition
from kaspar.replication.state import Role
from kaspar.storage import Log

if TYPE_CHECKING:
    from kaspar.broker.cleaner_jobs import CleanerJobs, Compaction, LogsToClean
    from kaspar.broker.cleaner_thread import CleanerThread
    from kaspar.broker.server import Broker
    from kaspar.storage.cleaning.book import CleanerBook
    from kaspar.storage.cleaning.cleaner import Cleaned, CleanerSettings

log = get_log(__name__)
T = TypeVar("T")

STOP_WITHIN_S: Final = 20.0
SPACE_MAY_RETURN_AFTER_S: Final = 15.0
"""How long a log waits that could not be cleaned for want of space."""
LEAST_BACKOFF_MS: Final = 100
"""Whatever `log.cleaner.backoff.ms` is: to look at all logs without a rest would be all that the broker does."""


@dataclass(slots=True)
class CleanerTotals:
    """Counts since the start, of all logs."""

    runs: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    records_removed: int = 0


def is_compacted(one: Log) -> bool:
    return "compact" in one.config.cleanup_policy


class Cleaning:
    """Owned by the event loop. What a thread may call says so."""

    def __init__(self, broker: "Broker") -> None:
        self.totals = CleanerTotals()
        self.threads: list[CleanerThread] = []
        self._leaving: list[CleanerThread] = []
        self._broker = broker
        self._jobs: CleanerJobs | None = None
        self._running = False
        self._abandoned = False
        self._records_removed: Counter[TopicPartition] = Counter()
        self._requested: dict[TopicPartition, int] = {}
        self._no_space_until: dict[TopicPartition, tuple[float, str]] = {}

    @property
    def book(self) -> "CleanerBook | None":
        """None while nobody has needed the cleaner."""
        return None if self._jobs is None else self._jobs.book

    # -- starting, changing, stopping --------------------------------------------------------------------------------

    def start(self) -> None:
        self._running = True
        self.topics_changed(tuple(self._broker.partitions.by_name))

    def topics_changed(self, topics: Collection[str]) -> None:
        """Some topics are new here, gone, or have other settings: the cleaner may be needed from now on."""
        if self._running and self._jobs is None and self._switched_on() and self._any_compacted(topics):
            self._broker.spawn(self._begin_unasked(), name="start of the log cleaner")

    def reconfigure(self) -> None:
        """The broker's settings have changed."""
        if not self._running:
            return
        if self._jobs is not None:
            self._jobs.throttle.bytes_per_second = _rate(self._broker.config)
            self._adjust_threads(self._jobs)
            self.wake()
        else:
            self.topics_changed(tuple(self._broker.partitions.by_name))

    def _switched_on(self) -> bool:
        config = self._broker.config
        return config.log_cleaner_enable and config.log_cleaner_threads > 0

    def _any_compacted(self, topics: Collection[str]) -> bool:
        hosted = (self._broker.partitions.by_name.get(topic) for topic in topics)
        return any(is_compacted(one.log) for each in hosted if each is not None for one in each.partitions.values())

    async def _begin(self) -> "CleanerJobs | None":
        """What is loaded for it takes 20 ms: so a thread does that. None if the broker stops meanwhile."""
        await self._broker.run_blocking(importlib.import_module, "kaspar.broker.cleaner_thread")
        from kaspar.broker.cleaner_jobs import CleanerJobs
        from kaspar.storage.cleaning.book import CleanerBook
        from kaspar.storage.cleaning.throttle import Throttle

        if self._jobs is None and self._running:
            throttle = Throttle(_rate(self._broker.config), self._broker.clock)
            self._jobs = CleanerJobs(CleanerBook(self._broker.logs), throttle)
            self._adjust_threads(self._jobs)
        return self._jobs

    async def _begin_unasked(self) -> None:
        await self._begin()

    def _adjust_threads(self, jobs: "CleanerJobs") -> None:
        from kaspar.broker.cleaner_thread import CleanerThread

        wanted = self._broker.config.log_cleaner_threads
        surplus, self.threads = self.threads[wanted:], self.threads[:wanted]
        for thread in surplus:
            thread.ask_to_stop()
        self._leaving = [thread for thread in self._leaving if thread.is_alive()] + surplus
        for number in range(len(self.threads), wanted):
            thread = CleanerThread(number, self, jobs)
            self.threads.append(thread)
            thread.start()

    def wake(self) -> None:
        for thread in self.threads:
            thread.wake()

    async def stop(self) -> None:
        """Give up what is being cleaned, and wait for the threads. Safe to call twice."""
        self._running = False
        threads = self._leaving + self.threads
        self._leaving, self.threads = [], []
        for thread in threads:
            thread.ask_to_stop()
        deadline = time.monotonic() + STOP_WITHIN_S
        for thread in threads:
            await self._broker.run_blocking(thread.join, max(0.0, deadline - time.monotonic()))
            if thread.is_alive():
                self._abandoned = True
                log.error("a cleaner thread does not stop; nothing it does counts any more", thread=thread.name)

    async def give_up(self, partitions: Collection[Partition]) -> None:
        """Return when no thread looks at these logs any more; the broker no longer has them, so none will again."""
        if self._jobs is None:
            return
        gone = {partition.topic_partition: partition.log for partition in partitions}
        for topic_partition in gone:
            self._requested.pop(topic_partition, None)
            self._no_space_until.pop(topic_partition, None)
            self._records_removed.pop(topic_partition, None)
        await self._broker.run_blocking(self._jobs.take_away, gone)

    # -- what the threads ask for ------------------------------------------------------------------------------------

    def settings(self) -> "CleanerSettings":
        """Of one thread: memory is for all of them together. Called by threads."""
        from kaspar.storage.cleaning.cleaner import CleanerSettings

        config = self._broker.config
        count = max(1, config.log_cleaner_threads)
        return CleanerSettings(
            dedupe_buffer_size=config.log_cleaner_dedupe_buffer_size // count,
            io_buffer_size=config.log_cleaner_io_buffer_size // count // 2,
            io_buffer_load_factor=config.log_cleaner_io_buffer_load_factor,
        )

    @property
    def backoff_ms(self) -> int:
        return max(LEAST_BACKOFF_MS, self._broker.config.log_cleaner_backoff_ms)

    @property
    def backoff_s(self) -> float:
        return self.backoff_ms / 1000

    def now_ms(self) -> int:
        """By the clock that is slow to believe a jump ahead: what cleaning removes does not come back."""
        return self._broker.logs.patient_clock.now_ms()

    def wall_ms(self) -> int:
        """What the wall clock says, whether it is believed or not: what is to go one day stays as long as it says."""
        return self._broker.clock.now_ms()

    def logs_to_clean(self) -> "LogsToClean":
        """Called by threads."""
        return self._on_loop(self._logs_to_clean)

    def may_go_on(self, one: Log) -> bool:
        """Whether the log is still here to be compacted. Called by threads, often."""
        partition = self._broker.partitions.get(one.topic_partition)
        return (
            partition is not None
            and partition.log is one
            and partition.state.role is not Role.NONE
            and not partition.offline
            and is_compacted(one)
        )

    def on_owner(self, one: Log, action: Callable[[], None]) -> None:
        """Have the loop do what only the owner of a log may, and wait for it. Called by threads."""
        self._on_loop(action)

    def cleaned(self, one: Log, result: "Cleaned") -> None:
        """Count what a cleaning has brought. Called by threads."""
        self._on_loop(lambda: self._count(one, result))

    def no_space(self, one: Log, refusal: Refused) -> None:
        """The disk is full: that is no failure, and the log is tried again later. Called by threads."""
        self._on_loop(lambda: self._wait_for_space(one, refusal))

    def directory_failed(self, failure: StorageFailure) -> None:
        """Called by threads."""
        self._on_loop(lambda: self._broker.log_directory_failed(failure))

    def met_a_bug(self, problem: Exception) -> None:
        """Called by threads."""
        self._on_loop(lambda: self._broker.request_failed(problem))

    def _on_loop(self, work: Callable[[], T]) -> T:
        """Have the event loop do something, and wait for what comes of it."""
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
            self._broker.from_thread(run)
        except RuntimeError as closed:
            raise CleaningStopped("the broker has stopped") from closed
        return done.result()

    # -- what the loop does for them ---------------------------------------------------------------------------------

    def _logs_to_clean(self) -> "LogsToClean":
        from kaspar.broker.cleaner_jobs import LogsToClean

        now = self._broker.clock.monotonic()
        for topic_partition in [each for each, (until, _) in self._no_space_until.items() if until <= now]:
            del self._no_space_until[topic_partition]
        stable: dict[TopicPartition, int] = {}
        on_request: list[Log] = []
        for hosted in self._broker.partitions.by_name.values():
            for partition in hosted.partitions.values():
                one = partition.log
                if is_compacted(one) and not partition.offline and one.topic_partition not in self._no_space_until:
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
        if self.may_go_on(one):
            self._records_removed[one.topic_partition] += statistics.records_removed
            if result.next_dirty_offset >= self._requested.get(one.topic_partition, -1):
                self._requested.pop(one.topic_partition, None)

    def _wait_for_space(self, one: Log, refusal: Refused) -> None:
        wait_s = max(SPACE_MAY_RETURN_AFTER_S, self.backoff_s)
        self._no_space_until[one.topic_partition] = (self._broker.clock.monotonic() + wait_s, refusal.message)
        log.warning(
            "a log cannot be cleaned now, and is tried again later",
            partition=one.topic_partition,
            reason=refusal.message,
            seconds=wait_s,
        )

    # -- compact now -------------------------------------------------------------------------------------------------

    async def compact(self, partition: Partition, target_offset: int) -> "Compaction":
        """Compact a partition up to an offset, or as far as can be now (-1), whatever its dirty ratio. Returns at once;
        asking again tells how far it is. Refused says why it cannot be.
        """
        one = partition.log
        self._check_compactable(one)
        jobs = self._jobs or await self._begin()
        if jobs is None:
            raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, "the broker stops")
        stable = partition.last_stable_offset
        if target_offset < 0 and stable > one.segments.base_offsets[-1]:
            # The active segment is never cleaned: what could be cleaned of it has to be in another.
            one.roll(now_ms=self._broker.clock.now_ms())
        progress = await self._broker.run_blocking(
            jobs.progress, one, target_offset, stable, self.now_ms(), self.may_go_on
        )
        requested = self._requested.get(one.topic_partition, -1)
        if progress.first_dirty_offset < progress.target_offset > requested and self.may_go_on(one):
            self._requested[one.topic_partition] = progress.target_offset
            self.wake()
        return replace(progress, records_removed=self._records_removed[one.topic_partition])

    def _check_compactable(self, one: Log) -> None:
        if not self._switched_on() or not self._running:
            raise Refused(
                ErrorCode.INVALID_CONFIG,
                "the log cleaner of this broker is off: set log.cleaner.enable=true and log.cleaner.threads=1 or more, "
                "and start the broker again",
            )
        if not is_compacted(one):
            topic = one.topic_partition.topic
            raise Refused(
                ErrorCode.POLICY_VIOLATION,
                f"cleanup.policy of {topic} is {','.join(one.config.cleanup_policy) or 'empty'}, so it is not "
                "compacted. To change that: kafka-configs.sh --bootstrap-server HOST:PORT --alter --entity-type topics "
                f"--entity-name {topic} --add-config cleanup.policy=compact",
            )
        if (waits := self._no_space_until.get(one.topic_partition)) is not None:
            raise Refused(ErrorCode.KAFKA_STORAGE_ERROR, f"{waits[1]}; it is tried again later")


def _rate(config: BrokerConfig) -> float:
    rate = config.log_cleaner_io_max_bytes_per_second
    return float("inf") if rate >= MAX_DOUBLE else max(rate, 1.0)
