"""The partitions that a follower copies from one leader, as a pure core: what to fetch next, and what a response means.

It corresponds to Kafka's AbstractFetcherThread. Rules:
- A follower requests the records after its log's end, and sends the leader epoch of its last record. If the leader's
  log has another epoch there, it responds with the largest epoch that both may have, and its end offset on the leader
  (KIP-595). The follower truncates to where the logs agree (KIP-101, KIP-279), never to its high watermark.
- A log with records but without epochs, which cannot be compared, is truncated to its high watermark, as in Kafka.
- A response counts only if the partition is still followed in the same leader epoch and from the same offset.
- A partition that failed is fetched again later; after FENCED_LEADER_EPOCH only in a new leader epoch.
"""

import uuid
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Final, NamedTuple

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import NO_EPOCH, TopicPartition
from kaspar.replication.divergence import Diverging, EpochLog, truncation_offset

FIRST_DELAY_MS: Final = 20
"""The delay after the first failure of a partition. It doubles with each further one, up to `replica.fetch.backoff.ms`.
Most often the leader only has to learn that it leads."""

PartitionKey = tuple[uuid.UUID, int]


class Position(NamedTuple):
    """The position from which a partition is fetched, as in a request."""

    fetch_offset: int
    leader_epoch: int
    last_fetched_epoch: int
    log_start_offset: int


class Verdict(Enum):
    """How to handle a partition's part of a response."""

    APPEND = "append"
    TRUNCATE = "truncate"
    LOOK_UP = "look up"
    """The offset is not in the leader's log: request the start and end offsets of that log."""
    DELAY = "delay"
    FAIL = "fail"
    IGNORE = "ignore"
    """The partition has changed since the request."""


class PartitionFetch:
    """One partition that is copied. `truncate_to`, `must_look_up` and `must_sync` are handled before the next fetch."""

    __slots__ = (
        "_failures",
        "has_failed",
        "is_caught_up",
        "lag",
        "leader_epoch",
        "log",
        "must_look_up",
        "must_sync",
        "not_before_ms",
        "topic_id",
        "topic_partition",
        "truncate_to",
    )

    def __init__(
        self,
        topic_id: uuid.UUID,
        topic_partition: TopicPartition,
        log: EpochLog,
        *,
        leader_epoch: int,
        high_watermark: int,
    ) -> None:
        self.topic_id = topic_id
        self.topic_partition = topic_partition
        self.log = log
        self.leader_epoch = leader_epoch
        has_records = log.log_end_offset > log.log_start_offset
        self.truncate_to = high_watermark if has_records and log.latest_epoch == NO_EPOCH else None
        self.must_look_up = False
        self.must_sync = False
        """`flush.messages=1`: the next fetch tells the leader that the log has these records, so sync them first."""
        self.not_before_ms = 0
        self.has_failed = False
        self.is_caught_up = False
        """Whether it had all committed records at the leader's last response; if so, it is not throttled."""
        self.lag = 0
        """How many committed records it lacked at that time."""
        self._failures = 0

    @property
    def key(self) -> PartitionKey:
        return self.topic_id, self.topic_partition.partition

    @property
    def position(self) -> Position:
        log = self.log
        return Position(log.log_end_offset, self.leader_epoch, log.latest_epoch, log.log_start_offset)

    def is_due(self, now_ms: int) -> bool:
        is_waiting = self.must_look_up or self.must_sync or self.truncate_to is not None
        return not (self.has_failed or is_waiting or self.not_before_ms > now_ms)

    def judge(self, asked: Position, error_code: int, diverging: Diverging | None) -> Verdict:
        """Decide how to handle a response to a fetch from `asked`."""
        if asked[:3] != self.position[:3] or not self.is_due(self.not_before_ms):
            return Verdict.IGNORE
        match error_code:
            case ErrorCode.NONE:
                if diverging is None:
                    return Verdict.APPEND
                self.truncate_to = truncation_offset(self.log, diverging)
                return Verdict.TRUNCATE
            case ErrorCode.OFFSET_OUT_OF_RANGE:
                self.must_look_up = True
                return Verdict.LOOK_UP
            case ErrorCode.FENCED_LEADER_EPOCH:
                self.has_failed = True
                return Verdict.FAIL
        return Verdict.DELAY

    def appended(self, leader_high_watermark: int) -> None:
        self._failures = 0
        self.lag = max(0, leader_high_watermark - self.log.log_end_offset)
        self.is_caught_up = self.lag == 0

    def truncated(self) -> None:
        self.truncate_to = None
        self.must_look_up = False

    def looked_up(self, leader_start_offset: int, leader_end_offset: int) -> int | None:
        """Apply the start and end offsets of the leader's log. Returns the offset at which this log must start over,
        empty; None if it need not.

        Kafka's fetchOffsetAndTruncate: a log that ends beyond the leader's, after an unclean election, is truncated to
        the leader's end. One that ends before the leader's start starts over there.
        """
        self.must_look_up = False
        end = self.log.log_end_offset
        if leader_end_offset < end:
            self.truncate_to = leader_end_offset
            return None
        return leader_start_offset if leader_start_offset > end else None

    def delay(self, now_ms: int, max_delay_ms: int) -> None:
        self.not_before_ms = now_ms + min(FIRST_DELAY_MS << min(self._failures, 16), max_delay_ms)
        self._failures += 1


IsThrottled = Callable[[PartitionFetch], bool]


class LeaderFetches:
    """The partitions of one fetcher. Most of them are settled: they have caught up, and are fetched from the same
    position as before. To make thousands of idle partitions cost nothing, a turn only checks the others: those that
    were added or in the last response, and those that wait for something.
    """

    def __init__(self) -> None:
        self._partitions: dict[PartitionKey, PartitionFetch] = {}
        self._unsettled: dict[PartitionKey, PartitionFetch] = {}
        self._removed: set[PartitionKey] = set()
        """Partitions removed since the last call of `changes`."""

    def __len__(self) -> int:
        return len(self._partitions)

    def __contains__(self, fetch: PartitionFetch) -> bool:
        return self._partitions.get(fetch.key) is fetch

    def add(self, fetch: PartitionFetch) -> None:
        self._partitions[fetch.key] = self._unsettled[fetch.key] = fetch
        self._removed.discard(fetch.key)

    def remove(self, key: PartitionKey) -> PartitionFetch | None:
        self._unsettled.pop(key, None)
        self._removed.add(key)
        return self._partitions.pop(key, None)

    def get(self, key: PartitionKey) -> PartitionFetch | None:
        return self._partitions.get(key)

    def responded(self, key: PartitionKey) -> PartitionFetch | None:
        """Return the partition if it is still copied, and mark it as unsettled, since the response will change it."""
        fetch = self._partitions.get(key)
        if fetch is not None:
            self._unsettled[key] = fetch
        return fetch

    def has_due(self, now_ms: int, is_throttled: IsThrottled) -> bool:
        """Whether any partition is to be fetched now."""
        if len(self._unsettled) < len(self._partitions):
            return True
        return any(_is_fetched(fetch, now_ms, is_throttled) for fetch in self._unsettled.values())

    def changes(self, now_ms: int, is_throttled: IsThrottled) -> dict[PartitionKey, Position | None]:
        """The positions of partitions that may have changed since the last call; None if one is not fetched now."""
        found: dict[PartitionKey, Position | None] = dict.fromkeys(self._removed)
        self._removed.clear()
        for key, fetch in tuple(self._unsettled.items()):
            is_fetched = _is_fetched(fetch, now_ms, is_throttled)
            found[key] = fetch.position if is_fetched else None
            if is_fetched and fetch.is_caught_up:
                del self._unsettled[key]
        return found

    def next_due_ms(self, now_ms: int) -> int | None:
        """When the next delayed partition will be due; None if there is none."""
        waiting = [
            fetch.not_before_ms
            for fetch in self._unsettled.values()
            if not fetch.has_failed and fetch.not_before_ms > now_ms
        ]
        return min(waiting, default=None)

    def to_truncate(self, now_ms: int) -> list[PartitionFetch]:
        return [each for each in self._ready(now_ms) if each.truncate_to is not None]

    def to_look_up(self, now_ms: int) -> list[PartitionFetch]:
        return [each for each in self._ready(now_ms) if each.must_look_up]

    def to_sync(self, now_ms: int) -> list[PartitionFetch]:
        return [each for each in self._ready(now_ms) if each.must_sync]

    def _ready(self, now_ms: int) -> Iterable[PartitionFetch]:
        return (each for each in self._unsettled.values() if not each.has_failed and each.not_before_ms <= now_ms)


def _is_fetched(fetch: PartitionFetch, now_ms: int, is_throttled: IsThrottled) -> bool:
    """Whether to fetch a partition now. A throttled one is left out unless it has caught up (KIP-73)."""
    return fetch.is_due(now_ms) and (fetch.is_caught_up or not is_throttled(fetch))
