"""A thread of the log cleaner: cleans the log that most needs it, then the next, and pauses when there is none.

Rules:
- A log that fails does not keep others from being cleaned. If the disk is full, the log waits; if the disk has failed,
  the log directory goes offline, as everywhere. Damage makes the log uncleanable, which is logged once. So does a bug,
  which is also reported to the broker.
- The memory for the offset map is allocated only while there is something to clean.
"""

import threading
import time
from collections.abc import Callable
from typing import Final, Protocol

from kaspar.base.errors import MalformedBytes, Refused, StorageFailure
from kaspar.base.log import get_log
from kaspar.broker.cleaning.jobs import CleanerJobs, LogsToClean, Meter
from kaspar.storage import Log
from kaspar.storage.cleaning.cleaner import Cleaned, Cleaner, CleanerSettings, CleaningStatistics
from kaspar.storage.cleaning.errors import CleaningStopped, Uncleanable
from kaspar.storage.cleaning.offsets_to_clean import OffsetsToClean

log = get_log(__name__)

LONGEST_PAUSE_S: Final = 3600.0


class CleaningLoop(Protocol):
    """The event loop's side of the cleaner (`log_cleaner.Cleaning`), as far as its threads call it."""

    @property
    def backoff_s(self) -> float: ...
    def settings(self) -> CleanerSettings: ...
    def now_ms(self) -> int: ...
    def wall_ms(self) -> int: ...
    def logs_to_clean(self) -> LogsToClean: ...
    def may_continue(self, one: Log) -> bool: ...
    def on_owner(self, one: Log, action: Callable[[], None]) -> None: ...
    def cleaned(self, one: Log, result: Cleaned) -> None: ...
    def no_space(self, one: Log, refusal: Refused) -> None: ...
    def directory_failed(self, failure: StorageFailure) -> None: ...
    def on_bug(self, problem: Exception) -> None: ...


class CleanerThread(threading.Thread):
    def __init__(self, number: int, cleaning: CleaningLoop, jobs: CleanerJobs) -> None:
        super().__init__(name=f"kaspar-cleaner-{number}", daemon=True)
        self.last: CleaningStatistics | None = None
        """What the last cleaning of this thread read and wrote, and how long it took."""
        self._cleaning = cleaning
        self._jobs = jobs
        self._meter = Meter(jobs.throttle)
        self._cleaner: Cleaner | None = None
        self._made_with: CleanerSettings | None = None
        self._stopping = False
        self._woken = threading.Event()

    def ask_to_stop(self) -> None:
        """Give up the current cleaning soon, and end. Returns at once."""
        self._stopping = True
        self._woken.set()

    def wake(self) -> None:
        """End the pause: there may be something to do."""
        self._woken.set()

    @property
    def is_dead(self) -> bool:
        """Whether the thread ended without having been asked to."""
        return self.ident is not None and not self.is_alive() and not self._stopping

    def run(self) -> None:
        while not self._stopping:
            try:
                progress = self._clean_dirtiest()
            except CleaningStopped:
                return  # the broker's event loop has ended
            if not progress:
                self._cleaner = None
                self._woken.wait(min(self._cleaning.backoff_s, LONGEST_PAUSE_S))
                self._woken.clear()

    def _clean_dirtiest(self) -> bool:
        """Clean the log that needs it most. Returns whether there was one and cleaning it made progress."""
        found = self._choose()
        if found is None:
            return False
        one, to_clean = found
        try:
            return self._clean(one, to_clean)
        finally:
            self._jobs.release(one)

    def _choose(self) -> tuple[Log, OffsetsToClean] | None:
        try:
            with self._jobs.choosing:
                return self._jobs.choose(self._cleaning.logs_to_clean(), self._cleaning.now_ms(), self._meter)
        except CleaningStopped:
            raise
        except StorageFailure as failure:
            self._cleaning.directory_failed(failure)
        except Refused as refusal:
            log.warning("the cleaner could not search for logs to clean", reason=refusal.message)
        except Exception as problem:
            log.exception("the cleaner failed to choose a log because of a bug")
            self._cleaning.on_bug(problem)
        return None

    def _clean(self, one: Log, to_clean: OffsetsToClean) -> bool:
        cleaning, manager = self._cleaning, self._jobs.manager
        started = time.perf_counter()
        size_before = one.size
        try:
            result = self._cleaner_now().clean(
                one,
                to_clean,
                cleaning.now_ms(),
                on_owner=cleaning.on_owner,
                stopped=lambda: self._stopping or not cleaning.may_continue(one),
                wall_ms=cleaning.wall_ms(),
            )
            manager.done(one, result.next_dirty_offset)
            cleaning.cleaned(one, result)
        except CleaningStopped:
            manager.release(one)
            log.info("gave up cleaning a log", partition=one.topic_partition)
            # False for a log that is still here: the thread pauses, after which it may be possible to clean it.
            return not cleaning.may_continue(one)
        except StorageFailure as failure:
            manager.release(one)
            cleaning.directory_failed(failure)
            return True
        except Refused as refusal:
            manager.release(one)
            cleaning.no_space(one, refusal)
            return True
        except (Uncleanable, MalformedBytes) as reason:
            self._uncleanable(one, str(reason))
            return True
        except Exception as problem:
            log.exception("the cleaner failed because of a bug", partition=one.topic_partition)
            self._uncleanable(one, f"a bug: {problem!r}")
            cleaning.on_bug(problem)
            return True
        self.last = result.statistics
        self._say(one, to_clean, result, size_before, time.perf_counter() - started)
        return result.next_dirty_offset > to_clean.first_dirty_offset

    def _cleaner_now(self) -> Cleaner:
        """The cleaner with the current settings."""
        settings = self._cleaning.settings()
        if self._cleaner is None or settings != self._made_with:
            self._cleaner = Cleaner(settings, self._meter)
            self._made_with = settings
        return self._cleaner

    def _uncleanable(self, one: Log, reason: str) -> None:
        self._jobs.manager.failed(one, reason)
        log.error("a partition cannot be cleaned and will be skipped", partition=one.topic_partition, reason=reason)

    @staticmethod
    def _say(one: Log, to_clean: OffsetsToClean, result: Cleaned, size_before: int, seconds: float) -> None:
        statistics = result.statistics
        log.info(
            "cleaned a log",
            partition=one.topic_partition,
            offsets=f"{to_clean.first_dirty_offset}-{result.next_dirty_offset}",
            bytes=f"{size_before}->{one.size}",
            records_read=statistics.records_read,
            records_removed=statistics.records_removed,
            seconds=round(seconds, 3),
        )
