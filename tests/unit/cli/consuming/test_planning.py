"""Where a consumer begins in each partition, and when it has read everything."""

import pytest

from kaspar.base.ids import TopicPartition
from kaspar.cli.consuming.planning import Bounds, start_of
from kaspar.cli.consuming.positions import AtOffset, AtTime, End, Last, Position, Start
from kaspar.cli.consuming.remaining import Remaining

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)


@pytest.mark.parametrize(
    ("position", "at_time", "expected"),
    [
        (Start(), -1, 10),
        (End(), -1, 20),
        (AtOffset(15), -1, 15),
        (AtOffset(3), -1, 10),
        (AtOffset(99), -1, 20),
        (Last(4), -1, 16),
        (Last(400), -1, 10),
        (AtTime(1000), 12, 12),
        (AtTime(1000), -1, 20),
    ],
)
def test_start_is_within_what_the_partition_has(position: Position, at_time: int, expected: int) -> None:
    assert start_of(position, Bounds(earliest=10, latest=20, at_time=at_time)) == expected


def test_reading_ends_with_the_last_record_of_every_partition() -> None:
    remaining = Remaining({A: 2, B: 1})
    assert not remaining.is_done
    remaining.assign({A: 0, B: 0})
    remaining.read(A, 0)
    remaining.read(B, 0)
    assert not remaining.is_done
    remaining.read(A, 1)
    assert remaining.is_done


def test_nothing_remains_of_partitions_that_are_empty_or_read_already() -> None:
    remaining = Remaining({A: 0, B: 5})
    remaining.assign({A: 0, B: 5})
    assert remaining.is_done


def test_end_may_lie_behind_the_last_record() -> None:
    remaining = Remaining({A: 3})
    remaining.assign({A: 0})
    remaining.read(A, 0)
    remaining.reached_end(A)
    assert remaining.is_done


def test_records_that_came_later_are_not_part_of_it() -> None:
    remaining = Remaining({A: 3})
    assert not remaining.is_behind_end(A, 2)
    assert remaining.is_behind_end(A, 3)


def test_member_of_a_group_reads_what_it_is_assigned() -> None:
    remaining = Remaining({A: 2, B: 2})
    remaining.assign({A: None, B: None})
    remaining.revoke([B])
    remaining.read(A, 1)
    assert remaining.is_done
    remaining.assign({B: None})
    assert not remaining.is_done


def test_member_without_partitions_has_nothing_to_wait_for() -> None:
    remaining = Remaining({A: 2})
    remaining.assign({})
    assert remaining.is_done
