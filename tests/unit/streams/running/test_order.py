"""The order in which a task processes its rows (kaspar.streams.running.order)."""

import itertools
import random
from typing import NamedTuple

import numpy as np
import pytest

from kaspar.streams.running.order import processing_order


class Row(NamedTuple):
    partition: int
    source: int
    offset: int
    time: int


def ordered(rows: list[Row]) -> list[list[Row]]:
    """The rows of each partition, in the order in which they are processed."""
    columns = np.array(rows, np.int64).T
    order, borders = processing_order(*columns)
    in_order = rows if order is None else [rows[number] for number in order.tolist()]
    return [in_order[first:last] for first, last in itertools.pairwise(borders)]


def as_kafka(rows: list[Row]) -> list[list[Row]]:
    """PartitionGroup: always the record with the smallest timestamp among the heads of the source partitions."""
    processed = []
    for partition in sorted({row.partition for row in rows}):
        queues: dict[int, list[Row]] = {}
        for row in sorted((row for row in rows if row.partition == partition), key=lambda each: each.offset):
            queues.setdefault(row.source, []).append(row)
        taken: list[Row] = []
        while queues:
            source = min(queues, key=lambda each: (queues[each][0].time, each))
            taken.append(queues[source].pop(0))
            if not queues[source]:
                del queues[source]
        processed.append(taken)
    return processed


def test_rows_of_one_source_stay_as_they_are() -> None:
    rows = [Row(0, 7, offset, 100 - offset) for offset in range(10)]
    order, borders = processing_order(*np.array(rows, np.int64).T)
    assert order is None
    assert borders == [0, 10]


def test_rows_are_in_the_order_of_their_offsets_however_they_arrive() -> None:
    rows = [Row(0, 1, offset, 5) for offset in (3, 1, 2, 0)]
    assert [row.offset for row in ordered(rows)[0]] == [0, 1, 2, 3]


def test_sources_are_merged_by_time() -> None:
    rows = [Row(0, 1, 0, 10), Row(0, 1, 1, 30), Row(0, 2, 0, 20), Row(0, 2, 1, 40)]
    assert [row.time for row in ordered(rows)[0]] == [10, 20, 30, 40]


def test_of_equal_times_the_first_topic_goes_first() -> None:
    rows = [Row(0, 2, 0, 10), Row(0, 1, 0, 10), Row(0, 1, 1, 10)]
    assert ordered(rows)[0] == [Row(0, 1, 0, 10), Row(0, 1, 1, 10), Row(0, 2, 0, 10)]


def test_a_late_record_does_not_overtake_its_own_source() -> None:
    rows = [Row(0, 1, 0, 50), Row(0, 1, 1, 10), Row(0, 2, 0, 20), Row(0, 2, 1, 60)]
    assert [(row.source, row.time) for row in ordered(rows)[0]] == [(2, 20), (1, 50), (1, 10), (2, 60)]


def test_rows_of_one_record_keep_their_order() -> None:
    rows = [Row(1, 1, 5, 10), Row(0, 1, 5, 10), Row(1, 1, 5, 10)]
    order, _ = processing_order(*np.array(rows, np.int64).T)
    assert order is not None
    assert order.tolist() == [1, 0, 2]


@pytest.mark.parametrize("seed", range(20))
def test_the_order_is_that_of_kafkas_partition_group(seed: int) -> None:
    rng = random.Random(seed)
    rows = [
        Row(rng.randrange(3), source, offset, rng.randrange(30))
        for source in rng.sample([0, 1, 1 << 32, (1 << 32) + 1], rng.randint(1, 4))
        for offset in range(rng.randint(1, 30))
    ]
    expected = as_kafka(rows)
    rng.shuffle(rows)
    assert ordered(rows) == expected


def test_many_partitions_need_more_than_16_bits() -> None:
    rows = [Row(partition, source, 0, 0) for partition in (40_000, 3, 70_000) for source in (9, 4)]
    assert ordered(rows) == [[Row(p, 4, 0, 0), Row(p, 9, 0, 0)] for p in (3, 40_000, 70_000)]
