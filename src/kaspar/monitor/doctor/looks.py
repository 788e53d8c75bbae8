"""Several observations of one cluster in chronological order, for checks that compare them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from kaspar.base.ids import TopicPartition
from kaspar.monitor.doctor.access import Access
from kaspar.monitor.doctor.observation import Observation
from kaspar.monitor.lag.windows import reads_uncommitted, unread
from kaspar.monitor.views import Commit


@dataclass(frozen=True, slots=True)
class Looks:
    observations: tuple[Observation, ...]
    """At least one, in chronological order."""

    @property
    def first(self) -> Observation:
        return self.observations[0]

    @property
    def last(self) -> Observation:
        return self.observations[-1]

    @property
    def access(self) -> Access:
        return self.last.access

    @property
    def span_s(self) -> float:
        return (self.last.at_ms - self.first.at_ms) / 1000

    def always(self, holds: Callable[[Observation], bool]) -> bool:
        return all(holds(each) for each in self.observations)

    def commits(self, group_id: str, partition: TopicPartition) -> list[Commit]:
        """The committed offset and the lag at each observation, as the rules of kaspar.monitor.lag expect them."""
        found = []
        for earlier, each in zip((None, *self.observations), self.observations, strict=False):
            commit = _commit(each, group_id, partition)
            if commit is not None:
                ends = None if earlier is None else earlier.ends.get(partition)
                kept_up = ends is not None and commit.offset >= (
                    ends.high_watermark
                    if reads_uncommitted(commit.offset, each.ends[partition])
                    else ends.last_stable_offset
                )
                found.append(replace(commit, kept_up=kept_up))
        return found


def _commit(observation: Observation, group_id: str, partition: TopicPartition) -> Commit | None:
    group, ends = observation.groups.get(group_id), observation.ends.get(partition)
    if group is None or ends is None or partition not in group.committed:
        return None
    offset = group.committed[partition]
    return Commit(offset, observation.at_ms, max(0, ends.high_watermark - offset), unread(offset, ends))


def topics_of(partitions: Iterable[TopicPartition]) -> tuple[str, ...]:
    return tuple(sorted({where.topic for where in partitions}))


def total_lag(observation: Observation, group_id: str) -> int:
    found = (_commit(observation, group_id, partition) for partition in observation.groups[group_id].committed)
    return sum(each.lag for each in found if each is not None)
