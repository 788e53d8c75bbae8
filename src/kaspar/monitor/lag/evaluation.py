"""Evaluates groups from what rounds have read. Owns the windows; each round is applied in one thread.

If a group's coordinator, or the leader of one of its partitions, did not respond, the last known values are kept and
marked as stale. Groups that no longer exist, and partitions of deleted topics, are removed at once.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from kaspar.base.ids import TopicPartition
from kaspar.client.admin.group_offsets import GroupOffset, GroupOffsets
from kaspar.client.admin.groups import WITHOUT_MEMBERS, GroupListing
from kaspar.client.admin.timestamps import RecordAt
from kaspar.monitor.lag.reading import NO_MEMBERS, Members, OffsetsRead
from kaspar.monitor.lag.rules import Thresholds, completeness, group_status, partition_status
from kaspar.monitor.lag.windows import CommitWindow, EndWindow, WindowSize, lags, unread
from kaspar.monitor.views import GroupLag, PartitionLag


@dataclass(frozen=True, slots=True)
class RecordTimes:
    """When records were written, according to the broker's index."""

    written_at_ms: Mapping[RecordAt, int]
    nothing_left: frozenset[RecordAt] = frozenset()
    """Positions followed only by transaction markers, which consumers never see."""


UNKNOWN_TIMES = RecordTimes({})


@dataclass(frozen=True, slots=True)
class EvaluationRules:
    thresholds: Thresholds
    min_distance_ms: int
    expire_group_ms: int


class Evaluator:
    def __init__(self, rules: EvaluationRules) -> None:
        self._rules = rules
        self._size = WindowSize(
            rules.thresholds.intervals, rules.min_distance_ms, longest_gap_ms=rules.thresholds.window_ms // 2
        )
        self._windows: dict[str, dict[TopicPartition, CommitWindow]] = {}
        self._ends: dict[TopicPartition, EndWindow] = {}
        self._members: dict[str, Members] = {}
        self._groups: dict[str, GroupLag] = {}

    @property
    def ends(self) -> Mapping[TopicPartition, EndWindow]:
        return self._ends

    def add_members(self, members: Mapping[str, Members]) -> None:
        """Add members, which are read less often than offsets."""
        self._members.update(members)

    def forget_members(self) -> None:
        self._members.clear()

    def remove(self, group: str) -> bool:
        """Remove a group. If it still exists, it starts over with the next round. Returns whether it was known."""
        self._windows.pop(group, None)
        return self._groups.pop(group, None) is not None

    def observe(self, read: OffsetsRead) -> list[RecordAt]:
        """Apply a round. Returns the positions at which groups have records to read, whose times `evaluate` needs."""
        now_ms = read.at_ms
        for where in read.gone:
            self._ends.pop(where, None)
        anew = {
            where
            for where, ends in read.ends.items()
            if self._ends.setdefault(where, EndWindow(self._rules.thresholds.intervals)).observe(ends, now_ms)
        }
        self._forget_deleted(read)
        late: dict[RecordAt, None] = {}
        for group, offsets in read.commits.items():
            windows = self._windows.setdefault(group, {})
            for where in windows.keys() - offsets.keys():
                del windows[where]
            for where, commit in offsets.items():
                if where not in read.ends:
                    continue
                if where not in windows or where in anew:
                    windows[where] = CommitWindow(self._size)
                windows[where].observe(commit, self._ends[where], now_ms)
                if commit.offset < read.ends[where].high_watermark:
                    late[RecordAt(where, commit.offset)] = None
        return list(late)

    def evaluate(self, read: OffsetsRead, times: RecordTimes = UNKNOWN_TIMES) -> dict[str, GroupLag]:
        """The lag of all groups, including those that could not be read in this round."""
        for group, known in self._groups.items():
            if group not in read.commits and not known.is_stale:
                self._groups[group] = replace(known, is_stale=True)
        for group, offsets in read.commits.items():
            self._evaluate_group(group, offsets, read, times)
        return dict(sorted(self._groups.items()))

    def _evaluate_group(self, group: str, offsets: GroupOffsets, read: OffsetsRead, times: RecordTimes) -> None:
        listing = read.groups[group]
        known = {} if group not in self._groups else {each.where: each for each in self._groups[group].partitions}
        partitions = []
        is_stale = False
        for where, commit in sorted(offsets.items()):
            if where in read.gone:
                continue
            if where in read.ends:
                if self._has_expired(group, where, listing, read.at_ms):
                    continue
                before = known.get(where)
                if before is not None and self._is_still_idle(group, before):
                    partitions.append(before)
                else:
                    partitions.append(self._evaluate_partition(group, listing, where, commit, read.at_ms, times))
            else:  # its leader did not respond
                is_stale = True
                if where in known:
                    partitions.append(known[where])
        if partitions:
            self._groups[group] = group_lag(
                group,
                partitions,
                listing,
                members=self._member_count(group, listing),
                is_stale=is_stale,
                at_ms=read.at_ms,
            )
        elif not is_stale:
            self._groups.pop(group, None)

    def _evaluate_partition(
        self,
        group: str,
        listing: GroupListing,
        where: TopicPartition,
        commit: GroupOffset,
        now_ms: int,
        times: RecordTimes,
    ) -> PartitionLag:
        commits = self._windows[group][where].commits
        ends = self._ends[where]
        lag, stable_lag = lags(commit.offset, ends.latest)
        position = RecordAt(where, commit.offset)
        nothing_left = position in times.nothing_left
        status = partition_status(
            commits,
            ends.recent(commit.offset),
            0 if nothing_left else unread(commit.offset, ends.latest),
            is_owned=self._is_owned(group, where, listing),
            now_ms=now_ms,
            thresholds=self._rules.thresholds,
        )
        return PartitionLag(
            where.topic,
            where.partition,
            status,
            commit.offset,
            ends.latest.high_watermark,
            ends.latest.last_stable_offset,
            lag,
            stable_lag,
            0.0 if lag == 0 or nothing_left else _seconds_behind(position, ends, times, now_ms),
            completeness(commits, self._rules.thresholds.intervals),
            tuple(commits),
            self._members.get(group, NO_MEMBERS).owners.get(where),
        )

    def _is_still_idle(self, group: str, before: PartitionLag) -> bool:
        """Whether there still is nothing to read and nothing has changed, as for most partitions of a large cluster."""
        ends = self._ends[before.where].latest
        return (
            before.lag == 0
            and before.end is self._windows[group][before.where].commits[-1]
            and (before.end_offset, before.stable_offset) == (ends.high_watermark, ends.last_stable_offset)
            and before.owner == self._members.get(group, NO_MEMBERS).owners.get(before.where)
        )

    def _is_owned(self, group: str, where: TopicPartition, listing: GroupListing) -> bool:
        """Whether a live member reads the partition. Members are read less often than states; until they are known, any
        member may read it."""
        if listing.state in WITHOUT_MEMBERS:
            return False
        return group not in self._members or where in self._members[group].owners

    def _member_count(self, group: str, listing: GroupListing) -> int | None:
        if listing.state in WITHOUT_MEMBERS:
            return 0
        return self._members[group].count if group in self._members else None

    def _has_expired(self, group: str, where: TopicPartition, listing: GroupListing, now_ms: int) -> bool:
        quiet_ms = now_ms - self._windows[group][where].changed_at_ms
        return quiet_ms > self._rules.expire_group_ms and listing.state in WITHOUT_MEMBERS

    def _forget_deleted(self, read: OffsetsRead) -> None:
        if read.lists_all_groups:
            for group in self._windows.keys() - read.groups.keys():
                del self._windows[group]
            for group in self._groups.keys() - read.groups.keys():
                del self._groups[group]
            for group in self._members.keys() - read.groups.keys():
                del self._members[group]
            if not read.problems:  # then a missing partition is not just unavailable
                for where in self._ends.keys() - read.ends.keys():
                    del self._ends[where]


def group_lag(
    group: str,
    partitions: Collection[PartitionLag],
    listing: GroupListing,
    *,
    members: int | None,
    is_stale: bool,
    at_ms: int,
) -> GroupLag:
    seconds = [each.lag_seconds for each in partitions if each.lag_seconds is not None]
    return GroupLag(
        group,
        group_status(each.status for each in partitions),
        tuple(partitions),
        sum(each.lag for each in partitions),
        max(seconds, default=None),
        max(partitions, key=lambda each: each.lag),
        sum(each.complete == 1 for each in partitions) / len(partitions),
        listing.state,
        listing.type.value,
        members,
        is_stale,
        at_ms,
    )


def _seconds_behind(position: RecordAt, ends: EndWindow, times: RecordTimes, now_ms: int) -> float | None:
    written_at_ms: float | None = times.written_at_ms.get(position)
    if written_at_ms is None:
        written_at_ms = ends.written_at_ms(position.offset)
    return None if written_at_ms is None else max(now_ms - written_at_ms, 0) / 1000
