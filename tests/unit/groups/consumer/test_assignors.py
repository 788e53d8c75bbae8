"""The assignors on examples that a person can check. What holds for all of them is in tests/property."""

import uuid

from kaspar.groups.consumer.assignors import GroupSpec, MemberSpec, assign_range, assign_uniform
from kaspar.groups.consumer.member import Partitions

A, B = uuid.UUID(int=1), uuid.UUID(int=2)


def spec(counts: dict[uuid.UUID, int], **members: MemberSpec) -> GroupSpec:
    return GroupSpec(members, counts)


def reads(*topics: uuid.UUID, has: Partitions | None = None, instance_id: str | None = None) -> MemberSpec:
    return MemberSpec(frozenset(topics), has or {}, instance_id)


def test_range_gives_each_member_the_same_range_of_each_topic() -> None:
    assigned = assign_range(spec({A: 5, B: 5}, x=reads(A, B), y=reads(A, B)))
    assert assigned == {
        "x": {A: frozenset({0, 1, 2}), B: frozenset({0, 1, 2})},
        "y": {A: frozenset({3, 4}), B: frozenset({3, 4})},
    }


def test_range_respects_subscriptions() -> None:
    assigned = assign_range(spec({A: 3, B: 2}, x=reads(A), y=reads(A, B), z=reads(B)))
    assert assigned == {
        "x": {A: frozenset({0, 1})},
        "y": {A: frozenset({2}), B: frozenset({0})},
        "z": {B: frozenset({1})},
    }


def test_range_with_more_members_than_partitions_leaves_the_last_without() -> None:
    assigned = assign_range(spec({A: 1}, x=reads(A), y=reads(A)))
    assert assigned == {"x": {A: frozenset({0})}, "y": {}}


def test_range_puts_static_members_first_by_their_instance_ids() -> None:
    assigned = assign_range(spec({A: 3}, x=reads(A), y=reads(A, instance_id="2"), z=reads(A, instance_id="1")))
    assert [assigned[member][A] for member in "zyx"] == [frozenset({0}), frozenset({1}), frozenset({2})]


def test_uniform_lets_members_keep_what_they_have() -> None:
    before = {A: frozenset({0, 3})}
    assigned = assign_uniform(spec({A: 4}, x=reads(A), y=reads(A, has=before)))
    assert assigned == {"x": {A: frozenset({1, 2})}, "y": before}


def test_uniform_leaves_one_more_where_it_is() -> None:
    assigned = assign_uniform(spec({A: 3}, x=reads(A, has={A: frozenset({0})}), y=reads(A, has={A: frozenset({1, 2})})))
    assert assigned == {"x": {A: frozenset({0})}, "y": {A: frozenset({1, 2})}}


def test_uniform_takes_from_members_that_have_too_much() -> None:
    assigned = assign_uniform(spec({A: 4}, x=reads(A, has={A: frozenset(range(4))}), y=reads(A)))
    assert assigned == {"x": {A: frozenset({0, 1})}, "y": {A: frozenset({2, 3})}}


def test_uniform_forgets_partitions_that_are_gone() -> None:
    assigned = assign_uniform(spec({A: 2}, x=reads(A, has={A: frozenset({1, 7}), B: frozenset({0})})))
    assert assigned == {"x": {A: frozenset({0, 1})}}


def test_uniform_balances_members_that_read_different_topics() -> None:
    assigned = assign_uniform(spec({A: 4, B: 2}, x=reads(A), y=reads(A, B)))
    assert sum(len(each) for each in assigned["x"].values()) == 3
    assert assigned["y"][B] == frozenset({0, 1})


def test_uniform_moves_what_it_must_between_members_that_read_different_topics() -> None:
    assigned = assign_uniform(spec({A: 4, B: 1}, x=reads(A, has={A: frozenset(range(4))}), y=reads(A, B)))
    assert assigned["y"] == {B: frozenset({0}), A: frozenset({3})}
    assert assigned["x"] == {A: frozenset({0, 1, 2})}


def test_nothing_to_read_is_nothing_to_assign() -> None:
    for assign in (assign_uniform, assign_range):
        assert assign(spec({}, x=reads())) == {"x": {}}
        assert assign(spec({})) == {}
