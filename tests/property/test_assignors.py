"""What holds for every assignment: each partition once, only to members that read it, balanced, and moved as little as
that takes.
"""

import uuid
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from kaspar.groups.consumer.assignors import (
    ASSIGNORS,
    GroupAssignment,
    GroupSpec,
    MemberSpec,
    assign_range,
    assign_uniform,
)
from kaspar.groups.consumer.member import Partitions

TOPICS = [uuid.UUID(int=number) for number in range(1, 6)]
NAMES = [f"m{number}" for number in range(8)]


@st.composite
def group_specs(draw: st.DrawFn, *, homogeneous: bool | None = None) -> GroupSpec:
    """Members that read some topics and had some of their partitions, each partition one owner at most; some of what
    they had is of topics that they no longer read, or of partitions that are gone.
    """
    counts = {topic: draw(st.integers(1, 12)) for topic in draw(st.sets(st.sampled_from(TOPICS), min_size=1))}
    names = draw(st.sets(st.sampled_from(NAMES), min_size=1))
    all_topics = frozenset(counts)
    same = draw(st.booleans()) if homogeneous is None else homogeneous
    common = draw(st.frozensets(st.sampled_from(sorted(counts))))
    owners: dict[tuple[uuid.UUID, int], str] = draw(
        st.dictionaries(st.tuples(st.sampled_from(TOPICS), st.integers(0, 14)), st.sampled_from(NAMES), max_size=40)
    )
    members = {}
    for name in sorted(names):
        reads = common if same else draw(st.frozensets(st.sampled_from(sorted(all_topics))))
        had: dict[uuid.UUID, set[int]] = {}
        for (topic, partition), owner in owners.items():
            if owner == name:
                had.setdefault(topic, set()).add(partition)
        instance_id = draw(st.none() | st.just(f"i-{name}"))
        members[name] = MemberSpec(reads, {topic: frozenset(each) for topic, each in had.items()}, instance_id)
    return GroupSpec(members, counts)


def pairs(partitions: Partitions) -> set[tuple[uuid.UUID, int]]:
    return {(topic, partition) for topic, numbers in partitions.items() for partition in numbers}


def sizes(assignment: GroupAssignment) -> dict[str, int]:
    return {name: len(pairs(partitions)) for name, partitions in assignment.items()}


@given(group_specs(), st.sampled_from(sorted(ASSIGNORS)))
def test_each_subscribed_partition_has_one_owner_that_reads_it(spec: GroupSpec, assignor: str) -> None:
    assignment = ASSIGNORS[assignor](spec)
    assert assignment.keys() == spec.members.keys()
    owned = Counter(pair for partitions in assignment.values() for pair in pairs(partitions))
    read = frozenset[uuid.UUID]().union(*(member.topic_ids for member in spec.members.values()))
    assert owned == Counter((topic, number) for topic in read for number in range(spec.partition_counts[topic]))
    for name, partitions in assignment.items():
        assert partitions.keys() <= spec.members[name].topic_ids
        assert all(partitions.values()), "no topic without partitions"


@given(group_specs(homogeneous=True))
def test_uniform_gives_nobody_two_more_than_another_if_all_read_the_same(spec: GroupSpec) -> None:
    counts = sizes(assign_uniform(spec)).values()
    assert max(counts) - min(counts) <= 1


@given(group_specs())
def test_uniform_leaves_no_partition_that_could_move_to_someone_with_two_less(spec: GroupSpec) -> None:
    assignment = assign_uniform(spec)
    counts = sizes(assignment)
    for owner, partitions in assignment.items():
        for topic in partitions:
            for other, member in spec.members.items():
                if topic in member.topic_ids:
                    assert counts[owner] - counts[other] <= 1


@given(group_specs())
def test_uniform_moves_nothing_that_is_balanced_already(spec: GroupSpec) -> None:
    first = assign_uniform(spec)
    settled = spec._replace(
        members={name: member._replace(assigned=first[name]) for name, member in spec.members.items()}
    )
    assert assign_uniform(settled) == first


@given(group_specs(homogeneous=True))
def test_uniform_takes_from_members_only_what_is_above_their_share(spec: GroupSpec) -> None:
    """As many keep one more than the share as there is to keep."""
    assignment = assign_uniform(spec)
    topics = next(iter(spec.members.values())).topic_ids
    share, extra = divmod(sum(spec.partition_counts[topic] for topic in topics), len(spec.members))
    could_keep = {}
    for name, member in spec.members.items():
        had = {
            (topic, number)
            for topic, number in pairs(member.assigned)
            if topic in topics and number < spec.partition_counts[topic]
        }
        kept = had & pairs(assignment[name])
        assert len(kept) >= min(len(had), share)
        could_keep[name] = (len(had), len(kept))
    with_extra = sum(had > share for had, _ in could_keep.values())
    assert sum(kept > share for _, kept in could_keep.values()) == min(with_extra, extra)


@given(group_specs())
def test_range_gives_ranges_that_differ_by_one_at_most(spec: GroupSpec) -> None:
    assignment = assign_range(spec)
    for topic, count in spec.partition_counts.items():
        readers = [name for name, member in spec.members.items() if topic in member.topic_ids]
        ranges = [sorted(assignment[name].get(topic, ())) for name in readers]
        for numbers in ranges:
            assert numbers == list(range(numbers[0], numbers[0] + len(numbers))) if numbers else True
            assert len(numbers) in (count // len(readers), count // len(readers) + 1)


@given(group_specs())
def test_range_does_not_depend_on_what_was_before(spec: GroupSpec) -> None:
    bare = spec._replace(members={name: member._replace(assigned={}) for name, member in spec.members.items()})
    assert assign_range(spec) == assign_range(bare)
