"""Rounds: read offsets, evaluate groups, publish. One round at a time, in a separate thread."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from kaspar.base.clock import Clock
from kaspar.base.errors import KasparError
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.groups import WITHOUT_MEMBERS
from kaspar.client.admin.session import Admin
from kaspar.monitor.lag.evaluation import EvaluationRules, Evaluator
from kaspar.monitor.lag.latest import LatestLag
from kaspar.monitor.lag.reading import GroupFilter, OffsetsRead, read_members, read_offsets
from kaspar.monitor.lag.rules import Thresholds
from kaspar.monitor.lag.times import IndexTimes
from kaspar.monitor.lag.windows import Ends
from kaspar.monitor.sessions import AdminThread
from kaspar.monitor.settings import LagSettings
from kaspar.monitor.views import GroupLag, RoundReport


@dataclass(frozen=True, slots=True)
class _Result:
    groups: Mapping[str, GroupLag]
    ends: Mapping[TopicPartition, Ends]
    report: RoundReport


class LagRounds:
    def __init__(self, settings: LagSettings, admin: AdminThread, latest: LatestLag, clock: Clock) -> None:
        self._filter = GroupFilter(settings.lag_group_allowlist, settings.lag_group_denylist)
        self._members_interval_ms = settings.lag_owners_interval_ms
        self._admin = admin
        self._latest = latest
        self._clock = clock
        self._members_at_ms = 0
        self._asked: set[str] = set()
        self._times = IndexTimes(clock)
        self._evaluator = Evaluator(
            EvaluationRules(
                Thresholds(
                    settings.lag_intervals,
                    settings.lag_intervals * settings.lag_interval_ms,
                    settings.lag_minimum_complete,
                ),
                settings.lag_min_distance_ms,
                settings.lag_expire_group_ms,
            )
        )

    async def run(self, also: Collection[TopicPartition] = ()) -> bool:
        """Run a round. Returns whether brokers have responded. `also` are more partitions whose ends are read."""
        try:
            result = await self._admin.call(lambda admin: self._round(admin, also))
        except (KasparError, OSError) as problem:
            self._latest.failed(RoundReport(self._clock.now_ms(), 0.0, 0, 0, {"cluster": str(problem)}))
            return False
        self._latest.publish(result.groups, result.ends, result.report)
        return True

    async def remove(self, group: str) -> bool:
        """Remove a group; it starts over if it still exists."""
        await self._admin.call(lambda admin: self._evaluator.remove(group))
        return self._latest.remove(group)

    async def close(self) -> None:
        await self._admin.close()

    def _round(self, admin: Admin, also: Collection[TopicPartition]) -> _Result:
        started = self._clock.monotonic()
        read = read_offsets(admin, self._filter, also=also, now_ms=self._clock.now_ms())
        late = self._evaluator.observe(read)
        self._maybe_read_members(admin, read)
        groups = self._evaluator.evaluate(read, self._times.read(admin, late))
        ends = {where: each.latest for where, each in self._evaluator.ends.items()}
        duration_ms = (self._clock.monotonic() - started) * 1000
        return _Result(
            groups, ends, RoundReport(read.at_ms, duration_ms, len(groups), len(read.ends), dict(read.problems))
        )

    def _maybe_read_members(self, admin: Admin, read: OffsetsRead) -> None:
        """Read the members of all non-empty groups periodically, and of new groups at once."""
        live = [name for name in read.commits if read.groups[name].state not in WITHOUT_MEMBERS]
        if read.at_ms - self._members_at_ms >= self._members_interval_ms:
            self._evaluator.forget_members()
            self._asked.clear()
            self._members_at_ms = read.at_ms
        if asked := [name for name in live if name not in self._asked]:
            self._evaluator.add_members(read_members(admin, asked))
            self._asked.update(asked)
