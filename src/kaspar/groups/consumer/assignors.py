"""The server-side assignors of consumer groups. They are pure functions.

- `range` gives every member a range of each topic it reads. Topics with the same partition count and the same readers
  are divided in the same way, so that joined partitions stay together. The previous assignment is ignored.
- `uniform` distributes all partitions evenly and moves as few as possible. If all members read the same topics, their
  partition counts differ by one at most. If not, no partition could be moved to a reader that has at least two fewer
  than its owner. Balance takes precedence over stickiness.

Racks are ignored, as in Kafka since 4.0.
"""

import uuid
from collections.abc import Callable, Iterable, Mapping
from heapq import heapify, heappop, heapreplace
from itertools import islice
from typing import Final, NamedTuple, TypeAlias

from kaspar.groups.consumer.member import NO_PARTITIONS, Partitions

UNIFORM: Final = "uniform"
RANGE: Final = "range"
_NONE: Final[frozenset[int]] = frozenset()


class MemberSpec(NamedTuple):
    """`topic_ids` are the existing topics that the member reads; `assigned` is its previous target."""

    topic_ids: frozenset[uuid.UUID]
    assigned: Partitions = NO_PARTITIONS
    instance_id: str | None = None


class GroupSpec(NamedTuple):
    members: Mapping[str, MemberSpec]
    partition_counts: Mapping[uuid.UUID, int]

    @property
    def is_homogeneous(self) -> bool:
        """Whether all members read the same topics."""
        subscriptions = iter(self.members.values())
        first = next(subscriptions).topic_ids
        return all(member.topic_ids is first or member.topic_ids == first for member in subscriptions)


GroupAssignment: TypeAlias = dict[str, Partitions]
Assignor: TypeAlias = Callable[[GroupSpec], GroupAssignment]


def assign_range(spec: GroupSpec) -> GroupAssignment:
    """Assign ranges, first to static members, by instance id: these keep their ranges when they rejoin."""
    order = sorted(spec.members, key=lambda member_id: _range_order(member_id, spec.members[member_id]))
    readers: dict[uuid.UUID, list[str]] = {}
    for member_id in order:
        for topic_id in spec.members[member_id].topic_ids:
            readers.setdefault(topic_id, []).append(member_id)
    assignment: dict[str, dict[uuid.UUID, frozenset[int]]] = {member_id: {} for member_id in order}
    for topic_id in sorted(readers):
        quota, extra = divmod(spec.partition_counts[topic_id], len(readers[topic_id]))
        start = 0
        for position, member_id in enumerate(readers[topic_id]):
            end = start + quota + (position < extra)
            if start < end:
                assignment[member_id][topic_id] = frozenset(range(start, end))
            start = end
    return dict(assignment)


def _range_order(member_id: str, member: MemberSpec) -> tuple[bool, str]:
    return (True, member_id) if member.instance_id is None else (False, member.instance_id)


def assign_uniform(spec: GroupSpec) -> GroupAssignment:
    if not spec.members:
        return {}
    return _deal_evenly(spec) if spec.is_homogeneous else _Balance(spec).assignment()


def _deal_evenly(spec: GroupSpec) -> GroupAssignment:
    """Assign partitions where all members read the same topics. A member keeps its partitions up to its share. As many
    members as the division leaves over have one more, first of all those that have it already. The remaining partitions
    go to members below their share, in order.
    """
    topic_ids = next(iter(spec.members.values())).topic_ids
    counts = {topic_id: spec.partition_counts[topic_id] for topic_id in sorted(topic_ids)}
    quota, extra = divmod(sum(counts.values()), len(spec.members))
    free = {topic_id: set(range(count)) for topic_id, count in counts.items()}
    assignment: GroupAssignment = {}
    sizes: dict[str, int] = {}
    for member_id, member in spec.members.items():
        keeps = _still_free(member.assigned, free)
        size = sum(map(len, keeps.values()))
        if size > quota:
            limit = quota + (extra > 0)
            extra -= extra > 0
            if size > limit:
                keeps, size = _first(keeps, limit), limit
        for topic_id, partitions in keeps.items():
            free[topic_id].difference_update(partitions)
        assignment[member_id], sizes[member_id] = keeps, size
    unassigned = ((topic_id, partition) for topic_id in counts for partition in sorted(free[topic_id]))
    for member_id, size in sizes.items():
        limit = quota
        if size <= quota and extra:
            limit += 1
            extra -= 1
        if size < limit:
            assignment[member_id] = _with(assignment[member_id], islice(unassigned, limit - size))
    left_over = next(unassigned, None)
    assert left_over is None, "the quotas add up to the number of partitions"
    return assignment


def _still_free(assigned: Partitions, free: Mapping[uuid.UUID, set[int]]) -> Partitions:
    """The assigned partitions that are still free; the same object if all of them are."""
    if all(partitions <= free.get(topic_id, _NONE) for topic_id, partitions in assigned.items()):
        return assigned
    retained = {topic_id: partitions & free.get(topic_id, _NONE) for topic_id, partitions in assigned.items()}
    return {topic_id: partitions for topic_id, partitions in retained.items() if partitions}


def _first(partitions: Partitions, count: int) -> Partitions:
    first: dict[uuid.UUID, frozenset[int]] = {}
    for topic_id, numbers in partitions.items():
        kept = numbers if len(numbers) <= count else frozenset(sorted(numbers)[:count])
        if kept:
            first[topic_id] = kept
        count -= len(kept)
    return first


def _with(partitions: Partitions, more: Iterable[tuple[uuid.UUID, int]]) -> Partitions:
    added: dict[uuid.UUID, list[int]] = {}
    for topic_id, partition in more:
        added.setdefault(topic_id, []).append(partition)
    both = dict(partitions)
    for topic_id, numbers in added.items():
        both[topic_id] = both.get(topic_id, _NONE).union(numbers)
    return both


class _Balance:
    """Assigns partitions where members read different topics. A partition stays with its owner if the owner reads the
    topic; the others go to the reader with the fewest partitions, topics with few readers first. Then partitions move
    from a reader to another that has at least two fewer, until none can. Each move brings two members closer to each
    other, so this ends.
    """

    def __init__(self, spec: GroupSpec) -> None:
        self._spec = spec
        self._counts = spec.partition_counts
        self._loads = dict.fromkeys(spec.members, 0)
        self._readers: dict[uuid.UUID, list[str]] = {}
        for member_id, member in spec.members.items():
            for topic_id in member.topic_ids:
                self._readers.setdefault(topic_id, []).append(member_id)
        self._topics = sorted(self._readers, key=self._fewest_readers_first)
        self._owned: dict[uuid.UUID, dict[str, list[int]]] = {topic_id: {} for topic_id in self._topics}

    def _fewest_readers_first(self, topic_id: uuid.UUID) -> tuple[int, float, uuid.UUID]:
        readers = len(self._readers[topic_id])
        return readers, -self._counts[topic_id] / readers, topic_id

    def assignment(self) -> GroupAssignment:
        self._assign_the_rest(self._keep())
        moved = True
        while moved:
            moved = False
            for topic_id in self._topics:
                moved |= self._balance(topic_id)
        assignment: dict[str, dict[uuid.UUID, frozenset[int]]] = {member_id: {} for member_id in self._loads}
        for topic_id, owners in self._owned.items():
            for member_id, owned in owners.items():
                assignment[member_id][topic_id] = frozenset(owned)
        return dict(assignment)

    def _keep(self) -> dict[uuid.UUID, list[int]]:
        """Let readers keep the partitions that they had. Returns the partitions without an owner."""
        free = {topic_id: set(range(self._counts[topic_id])) for topic_id in self._topics}
        for member_id, member in self._spec.members.items():
            for topic_id, partitions in member.assigned.items():
                if topic_id in member.topic_ids:
                    retained = sorted(partitions & free[topic_id])
                    if retained:
                        free[topic_id].difference_update(retained)
                        self._owned[topic_id][member_id] = retained
                        self._loads[member_id] += len(retained)
        return {topic_id: sorted(partitions) for topic_id, partitions in free.items()}

    def _assign_the_rest(self, free: dict[uuid.UUID, list[int]]) -> None:
        for topic_id, partitions in free.items():
            if not partitions:
                continue
            owned, by_load = self._owned[topic_id], self._by_load(self._readers[topic_id])
            for partition in partitions:
                load, order, least = by_load[0]
                owned.setdefault(least, []).append(partition)
                self._loads[least] = load + 1
                heapreplace(by_load, (load + 1, order, least))

    def _by_load(self, members: Iterable[str], sign: int = 1) -> list[tuple[int, int, str]]:
        """A heap of these members, the one with the fewest partitions first, or with the most if `sign` is -1."""
        heap = [(sign * self._loads[member_id], order, member_id) for order, member_id in enumerate(members)]
        heapify(heap)
        return heap

    def _balance(self, topic_id: uuid.UUID) -> bool:
        """Even out the readers of one topic as far as its partitions allow. Returns whether a partition was moved."""
        loads, owned, readers = self._loads, self._owned[topic_id], self._readers[topic_id]
        if len(readers) < 2 or max(map(loads.__getitem__, owned)) - min(map(loads.__getitem__, readers)) < 2:
            return False
        # A load that one heap changes is stale in the other. The next pass reads the current loads.
        with_least, with_most = self._by_load(readers), self._by_load(owned, -1)
        while True:
            (_, _, most), (load, order, least) = with_most[0], with_least[0]
            if loads[most] - load < 2:
                return True
            owned.setdefault(least, []).append(owned[most].pop())
            loads[most] -= 1
            loads[least] = load + 1
            heapreplace(with_least, (load + 1, order, least))
            if owned[most]:
                heapreplace(with_most, (-loads[most], with_most[0][1], most))
            else:
                del owned[most]
                heappop(with_most)
                if not with_most:
                    return True


ASSIGNORS: Final[Mapping[str, Assignor]] = {UNIFORM: assign_uniform, RANGE: assign_range}
