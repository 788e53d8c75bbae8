"""The state that all cleaner threads share: the manager, the throttle, and which thread is cleaning which log.

Rules:
- `choosing` is held while a thread reads logs that no thread has claimed (to choose the next one, or to report the
  progress of one), and while logs are taken away. So no thread reads files of a log that is being deleted.
- Nothing here may be called on the event loop: every call may wait for another thread, or for the disk.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import TopicPartition
from kaspar.storage import Log
from kaspar.storage.cleaning.errors import CleaningStopped, DamagedSegment
from kaspar.storage.cleaning.manager import LogCleanerManager
from kaspar.storage.cleaning.offsets_to_clean import OffsetsToClean, offsets_to_clean
from kaspar.storage.cleaning.throttle import Throttle


@dataclass(frozen=True, slots=True)
class LogsToClean:
    """What the event loop gives to a thread that chooses a log to clean."""

    last_stable_offsets: dict[TopicPartition, int]
    on_request: list[Log]


@dataclass(frozen=True, slots=True)
class Compaction:
    """The progress of a compaction on request."""

    target_offset: int
    first_dirty_offset: int
    percent: int
    """The progress of the cleaning that is under way; -1 if there is none."""
    records_removed: int = 0
    """Counted since the broker started."""


class Meter:
    """The progress of one thread: bytes moved, of the bytes it has to read. All threads share the throttle."""

    def __init__(self, throttle: Throttle) -> None:
        self._throttle = throttle
        self._moved = 0
        self._expected = 1

    def begin(self, to_clean: OffsetsToClean) -> None:
        """Start a cleaning. The dirty part counts twice, because it is read twice."""
        self._moved, self._expected = 0, max(1, to_clean.clean_bytes + 2 * to_clean.dirty_bytes)

    def spent(self, count: int, stopped: Callable[[], bool]) -> None:
        self._moved += count
        self._throttle.spent(count, stopped)

    @property
    def percent(self) -> int:
        """The progress in percent of the expected reads. How much will be written is not known in advance."""
        return min(99, 100 * self._moved // self._expected)


class CleanerJobs:
    def __init__(self, manager: LogCleanerManager, throttle: Throttle) -> None:
        self.manager = manager
        self.throttle = throttle
        self.choosing = threading.Lock()
        self._at_work: dict[int, Meter] = {}
        self._changed = threading.Condition()

    def choose(self, logs: LogsToClean, now_ms: int, meter: Meter) -> tuple[Log, OffsetsToClean] | None:
        """Claim the log that most needs cleaning for the caller, until `release`. `choosing` must be held.

        Raises Refused if there is such a log but no space to clean it.
        """
        found, refusal = self._on_request(logs, now_ms)
        found = found or self.manager.next_to_clean(logs.last_stable_offsets, now_ms)
        if found is None and refusal is not None:
            raise refusal
        if found is not None:
            meter.begin(found[1])
            with self._changed:
                self._at_work[id(found[0])] = meter
        return found

    def _on_request(self, logs: LogsToClean, now_ms: int) -> tuple[tuple[Log, OffsetsToClean] | None, Refused | None]:
        """A log whose compaction was requested, and why another one could not be claimed."""
        refusal: Refused | None = None
        for one in logs.on_request:
            try:
                to_clean = self.manager.claim(one, logs.last_stable_offsets[one.topic_partition], now_ms)
            except Refused as refused:  # its directory has no space left, but another directory may have some
                refusal = refused
                continue
            if to_clean is not None:
                return (one, to_clean), refusal
        return None, refusal

    def release(self, one: Log) -> None:
        with self._changed:
            self._at_work.pop(id(one), None)
            self._changed.notify_all()

    def take_away(self, logs: dict[TopicPartition, Log]) -> None:
        """Return when no thread cleans or reads these logs any more and the manager has forgotten them."""
        gone = {id(one) for one in logs.values()}
        with self.choosing:
            with self._changed:
                self._changed.wait_for(lambda: not self._at_work.keys() & gone)
            self.manager.forget(logs)

    def progress(
        self, one: Log, target_offset: int, last_stable_offset: int, now_ms: int, is_ours: Callable[[Log], bool]
    ) -> Compaction:
        """The progress of a log towards `target_offset`, or towards the last offset that can be compacted now (-1)."""
        with self.choosing:
            if not is_ours(one):
                raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{one.topic_partition} is no longer here")
            if (reason := self.manager.why_uncleanable(one)) is not None:
                raise Refused(ErrorCode.CORRUPT_MESSAGE, f"{one.topic_partition} cannot be cleaned: {reason}")
            first_dirty = self.manager.first_dirty_offset(one)
            if target_offset < 0:
                target_offset = _first_uncleanable_offset(one, first_dirty, last_stable_offset, now_ms)
            meter = self._at_work.get(id(one))
            return Compaction(target_offset, first_dirty, -1 if meter is None else meter.percent)


def _first_uncleanable_offset(one: Log, first_dirty_offset: int, last_stable_offset: int, now_ms: int) -> int:
    try:
        return offsets_to_clean(one, first_dirty_offset, last_stable_offset, now_ms).first_uncleanable_offset
    except (FileNotFoundError, CleaningStopped) as error:
        raise Refused(
            ErrorCode.KAFKA_STORAGE_ERROR, f"old segments of {one.topic_partition} are being deleted: try again"
        ) from error
    except DamagedSegment as damage:
        raise Refused(ErrorCode.CORRUPT_MESSAGE, f"{one.topic_partition} cannot be cleaned: {damage}") from damage
    except OSError as error:
        raise one.directory.fail(error, f"reading {one.topic_partition}") from error
