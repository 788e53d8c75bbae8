"""One thread of the log cleaner: takes the log that most needs it, cleans it, and looks for the next; rests when there
is none.

Rules:
- What goes wrong with one log keeps no other from being cleaned. A full disk makes its log wait; a failed one takes the
  log directory offline, as everywhere; damage makes the log uncleanable, which is said once; so does a bug, which is
  also told to the broker.
- The memory for the map of keys is there only while there is something to clean.
"""

import threading
import time
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import MalformedBytes, Refused, StorageFailure
from kaspar.base.log import get_log
from kaspar.broker.cleaner_jobs import CleanerJobs, Meter
from kaspar.storage import Log
from kaspar.storage.cleaning.cleaner import Cleaned, Cleaner, CleanerSettings, CleaningStatistics
from kaspar.storage.cleaning.dirt import Dirt
from kaspar.storage.cleaning.errors import CleaningStopped, Uncleanable

if TYPE_CHECKING:
    from kaspar.broker.cleaning import Cleaning

log = get_log(__name__)

LONGEST_REST_S: Final = 3600.0


class CleanerThread(threading.Thread):
    def __init__(self, number: int, cleaning: "Cleaning", jobs: CleanerJobs) -> None:
        super().__init__(name=f"kaspar-cleaner-{number}", daemon=True)
        self.last: CleaningStatistics | None = None
        """What the last cleaning of this thread has read, written and taken."""
        self._cleaning = cleaning
        self._jobs = jobs
        self._meter = Meter(jobs.throttle)
        self._cleaner: Cleaner | None = None
        self._made_with: CleanerSettings | None = None
        self._stopping = False
        self._woken = threading.Event()

    def ask_to_stop(self) -> None:
        """Give up what is being cleaned, soon. Returns at once."""
        self._stopping = True
        self._woken.set()

    def wake(self) -> None:
        """There may be something to do before the rest is over."""
        self._woken.set()

    @property
    def is_dead(self) -> bool:
        """Whether it ended although nobody had asked it to."""
        return self.ident is not None and not self.is_alive() and not self._stopping

    def run(self) -> None:
        while not self._stopping:
            try:
                progress = self._clean_filthiest()
            except CleaningStopped:
                return  # the broker's loop has ended
            if not progress:
                self._cleaner = None
                self._woken.wait(min(self._cleaning.backoff_s, LONGEST_REST_S))
                self._woken.clear()

    def _clean_filthiest(self) -> bool:
        """Whether there was a log to clean, and it is cleaner now."""
        found = self._choose()
        if found is None:
            return False
        one, dirt = found
        try:
            return self._clean(one, dirt)
        finally:
            self._jobs.let_go(one)

    def _choose(self) -> tuple[Log, Dirt] | None:
        try:
            with self._jobs.choosing:
                return self._jobs.choose(self._cleaning.logs_to_clean(), self._cleaning.now_ms(), self._meter)
        except CleaningStopped:
            raise
        except StorageFailure as failure:
            self._cleaning.directory_failed(failure)
        except Refused as refusal:
            log.warning("the cleaner could not look for logs to clean", reason=refusal.message)
        except Exception as problem:
            log.exception("the cleaner met a bug while it looked for logs to clean")
            self._cleaning.met_a_bug(problem)
        return None

    def _clean(self, one: Log, dirt: Dirt) -> bool:
        cleaning, book = self._cleaning, self._jobs.book
        started = time.perf_counter()
        size_before = one.size
        try:
            result = self._cleaner_now().clean(
                one,
                dirt,
                cleaning.now_ms(),
                on_owner=cleaning.on_owner,
                stopped=lambda: self._stopping or not cleaning.may_go_on(one),
                wall_ms=cleaning.wall_ms(),
            )
            book.done(one, result.next_dirty_offset)
            cleaning.cleaned(one, result)
        except CleaningStopped:
            book.release(one)
            log.info("gave up cleaning a log", partition=one.topic_partition)
            return not cleaning.may_go_on(one)  # whatever was in the way of one that is still here may be gone later
        except StorageFailure as failure:
            book.release(one)
            cleaning.directory_failed(failure)
            return True
        except Refused as refusal:
            book.release(one)
            cleaning.no_space(one, refusal)
            return True
        except (Uncleanable, MalformedBytes) as reason:
            self._uncleanable(one, str(reason))
            return True
        except Exception as problem:
            log.exception("the cleaner met a bug", partition=one.topic_partition)
            self._uncleanable(one, f"a bug: {problem!r}")
            cleaning.met_a_bug(problem)
            return True
        self.last = result.statistics
        self._say(one, dirt, result, size_before, time.perf_counter() - started)
        return result.next_dirty_offset > dirt.first_dirty_offset

    def _cleaner_now(self) -> Cleaner:
        """With the settings of this moment."""
        settings = self._cleaning.settings()
        if self._cleaner is None or settings != self._made_with:
            self._cleaner = Cleaner(settings, self._meter)
            self._made_with = settings
        return self._cleaner

    def _uncleanable(self, one: Log, reason: str) -> None:
        self._jobs.book.failed(one, reason)
        log.error("a partition cannot be cleaned, and is left as it is", partition=one.topic_partition, reason=reason)

    @staticmethod
    def _say(one: Log, dirt: Dirt, result: Cleaned, size_before: int, seconds: float) -> None:
        statistics = result.statistics
        log.info(
            "cleaned a log",
            partition=one.topic_partition,
            offsets=f"{dirt.first_dirty_offset}-{result.next_dirty_offset}",
            bytes=f"{size_before}->{one.size}",
            records_read=statistics.records_read,
            records_removed=statistics.records_removed,
            seconds=round(seconds, 3),
        )
