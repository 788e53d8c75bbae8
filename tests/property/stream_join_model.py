"""Joins of two streams by brute force: lists of records, and Kafka's loop over those without partner, word for word.

Nothing is indexed and nothing expires but by definition: a record can be found by the other side if it is younger than
the retention, seen from the latest record of its own side, and was not dropped when it arrived.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from kaspar.streams.windows import JoinWindows

SMALLEST_SEGMENT_MS = 60_000


class Arrival(NamedTuple):
    is_left: bool
    key: str | None
    value: str | None
    timestamp: int


class Result(NamedTuple):
    key: str | None
    left: str | None
    right: str | None
    timestamp: int


@dataclass
class Side:
    before_ms: int
    after_ms: int
    keeps_unmatched: bool
    records: list[Arrival] = field(default_factory=list)
    latest: int = -1

    def keep(self, record: Arrival, retention_ms: int) -> None:
        self.latest = max(self.latest, record.timestamp)
        segment_ms = max(retention_ms // 2, SMALLEST_SEGMENT_MS)
        if record.timestamp // segment_ms >= (self.latest - retention_ms) // segment_ms:
            self.records.append(record)

    def partners(self, key: str, first: int, last: int, retention_ms: int) -> list[Arrival]:
        found = [
            each
            for each in self.records
            if each.key == key and first <= each.timestamp <= last and each.timestamp > self.latest - retention_ms
        ]
        return sorted(found, key=lambda each: each.timestamp)


class StreamJoinModel:
    def __init__(self, kind: str, windows: JoinWindows) -> None:
        self.windows = windows
        self.left = Side(windows.before_ms, windows.after_ms, kind != "join")
        self.right = Side(windows.after_ms, windows.before_ms, kind == "outer_join")
        self.now = -1
        self.waiting: list[Arrival] = []
        self.earliest = 1 << 62

    def receive(self, record: Arrival) -> list[Result]:
        this, other = (self.left, self.right) if record.is_left else (self.right, self.left)
        self.now = max(self.now, record.timestamp)
        if record.value is None or record.key is None:
            return [_alone(record)] if record.value is not None and this.keeps_unmatched else []
        results = []
        if record.timestamp == self.now and self.earliest + this.after_ms + self.windows.grace_ms < self.now:
            results += self._closed()
        first, last = max(0, record.timestamp - this.before_ms), max(0, record.timestamp + this.after_ms)
        partners = other.partners(record.key, first, last, self.windows.retention_ms)
        for partner in partners:
            self.waiting = [each for each in self.waiting if _place(each) != _place(partner)]
            results.append(_pair(record, partner))
        if not partners and this.keeps_unmatched:
            if last < self.now:
                results.append(_alone(record))
            else:
                self.earliest = min(self.earliest, record.timestamp)
                self.waiting.append(record)
        this.keep(record, self.windows.retention_ms)
        return results

    def _closed(self) -> list[Result]:
        self.earliest = 1 << 62
        closed: list[Arrival] = []
        left_is_open = right_is_open = False
        for each in sorted(self.waiting, key=_place):
            self.earliest = each.timestamp
            if left_is_open and right_is_open:
                break
            side = self.left if each.is_left else self.right
            if each.timestamp + side.after_ms + self.windows.grace_ms >= self.now:
                left_is_open, right_is_open = left_is_open or each.is_left, right_is_open or not each.is_left
                continue
            closed.append(each)
        self.waiting = [each for each in self.waiting if each not in closed]
        return [_alone(each) for each in closed]


def _place(record: Arrival) -> tuple[int, bool, str]:
    assert record.key is not None
    return record.timestamp, record.is_left, record.key


def _alone(record: Arrival) -> Result:
    left, right = (record.value, None) if record.is_left else (None, record.value)
    return Result(record.key, left, right, record.timestamp)


def _pair(record: Arrival, partner: Arrival) -> Result:
    left, right = (record, partner) if record.is_left else (partner, record)
    return Result(record.key, left.value, right.value, max(record.timestamp, partner.timestamp))
