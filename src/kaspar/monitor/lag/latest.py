"""The lag of all groups as of the last round, and its history. Must be read from the event loop."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kaspar.base.ids import TopicPartition
from kaspar.monitor.lag.windows import Ends
from kaspar.monitor.series import Series
from kaspar.monitor.views import GroupLag, LagPoint, RoundReport

_POINTS = 240


class LatestLag:
    def __init__(self, *, history_ms: int) -> None:
        self._history_ms = history_ms
        self._groups: Mapping[str, GroupLag] = {}
        self._ends: Mapping[TopicPartition, Ends] = {}
        self._history: dict[str, Series] = {}
        self._has_read = False
        self.last_round: RoundReport | None = None

    @property
    def has_read(self) -> bool:
        """Whether a round has ever read offsets."""
        return self._has_read

    def groups(self) -> Mapping[str, GroupLag]:
        """All groups, sorted by name."""
        return self._groups

    def group(self, name: str) -> GroupLag | None:
        return self._groups.get(name)

    def ends(self) -> Mapping[TopicPartition, Ends]:
        """The ends of all partitions; in a large cluster, of those with committed offsets."""
        return self._ends

    def topics(self) -> dict[str, list[int | None]]:
        """The high watermarks of each topic's partitions, by partition number."""
        topics: dict[str, list[int | None]] = {}
        for where, ends in self._ends.items():
            offsets = topics.setdefault(where.topic, [])
            offsets += [None] * (where.partition + 1 - len(offsets))
            offsets[where.partition] = ends.high_watermark
        return dict(sorted(topics.items()))

    def history(self, name: str, since_ms: int) -> Sequence[LagPoint]:
        """The history of a group, oldest first. Older points are sparser."""
        series = self._history.get(name)
        if series is None:
            return ()
        return [LagPoint(at_ms, int(lag or 0), seconds) for at_ms, (lag, seconds) in series.since(since_ms)]

    def publish(self, groups: Mapping[str, GroupLag], ends: Mapping[TopicPartition, Ends], report: RoundReport) -> None:
        """Publish the result of a round."""
        self._groups, self._ends, self.last_round = groups, ends, report
        self._has_read = True
        for name in self._history.keys() - groups.keys():
            del self._history[name]
        for name, group in groups.items():
            if not group.is_stale:
                series = self._history.setdefault(name, Series(keep_ms=self._history_ms, capacity=_POINTS, columns=2))
                series.append(report.at_ms, group.total_lag, group.max_lag_seconds)

    def failed(self, report: RoundReport) -> None:
        """Report a round that could not read anything: known values are kept, and marked as stale."""
        self.last_round = report
        self._groups = {name: replace(group, is_stale=True) for name, group in self._groups.items()}

    def remove(self, name: str) -> bool:
        """Remove a group. Returns whether it was known."""
        self._history.pop(name, None)
        was_known = name in self._groups
        self._groups = {other: group for other, group in self._groups.items() if other != name}
        return was_known
