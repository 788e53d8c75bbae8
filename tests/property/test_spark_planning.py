"""Tasks read every offset of a batch once, whatever the partitions, their sizes and the wishes for tasks are."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from kaspar.base.ids import TopicPartition
from kaspar.spark.reading.planning import (
    TASK_BYTES,
    Limits,
    OffsetRange,
    Parallelism,
    ReadTask,
    available,
    limited,
    tasks,
    waits_for_more,
)

MIB = 1024 * 1024


@st.composite
def batches(draw: st.DrawFn) -> tuple[list[OffsetRange], dict[TopicPartition, float]]:
    """Ranges of different partitions, and bytes per offset of some of them."""
    count = draw(st.integers(0, 12))
    ranges, sizes = [], {}
    for partition in range(count):
        start = draw(st.integers(0, 1 << 40))
        length = draw(st.one_of(st.integers(0, 50), st.integers(0, 10_000_000)))
        ranges.append(OffsetRange("topic", partition, start, start + length))
        if draw(st.booleans()):
            sizes[TopicPartition("topic", partition)] = draw(st.floats(0.01, 2 * MIB))
    return ranges, sizes


wishes = st.builds(
    Parallelism,
    cores=st.integers(1, 16),
    packs=st.booleans(),
    min_partitions=st.none() | st.integers(1, 40),
    max_records_per_partition=st.none() | st.integers(100_000, 10_000_000),
    splits=st.booleans(),
)


def pieces(planned: list[ReadTask]) -> list[OffsetRange]:
    return [piece for task in planned for piece in task.ranges]


@settings(deadline=None)
@given(batches(), wishes)
def test_ranges_are_covered_without_gap_or_overlap(
    batch: tuple[list[OffsetRange], dict[TopicPartition, float]], wanted: Parallelism
) -> None:
    ranges, sizes = batch
    found = sorted(pieces(tasks(ranges, sizes, wanted)), key=lambda each: (each.partition, each.start))
    for whole in ranges:
        parts = [each for each in found if each.partition == whole.partition]
        assert all(len(part) for part in parts), "no piece is empty"
        bounds = [whole.start, *(part.end for part in parts)]
        assert [part.start for part in parts] == bounds[:-1]
        assert bounds[-1] == whole.end
    assert sum(map(len, found)) == sum(map(len, ranges))


@settings(deadline=None)
@given(batches(), wishes)
def test_there_are_as_many_tasks_as_are_wished_for_at_least_if_there_are_offsets_for_them(
    batch: tuple[list[OffsetRange], dict[TopicPartition, float]], wanted: Parallelism
) -> None:
    ranges, sizes = batch
    planned = tasks(ranges, sizes, wanted)
    assert len(planned) >= min(wanted.min_partitions or 0, sum(map(len, ranges)))
    assert all(task.ranges for task in planned)


@settings(deadline=None)
@given(batches(), wishes)
def test_no_task_reads_more_records_than_it_may(
    batch: tuple[list[OffsetRange], dict[TopicPartition, float]], wanted: Parallelism
) -> None:
    for task in tasks(*batch, wanted):
        if wanted.max_records_per_partition is not None:
            assert sum(map(len, task.ranges)) <= wanted.max_records_per_partition


@settings(deadline=None)
@given(batches(), st.builds(Parallelism, cores=st.integers(1, 16), packs=st.booleans(), splits=st.just(False)))
def test_partitions_are_whole_where_none_may_be_split(
    batch: tuple[list[OffsetRange], dict[TopicPartition, float]], wanted: Parallelism
) -> None:
    ranges, sizes = batch
    found = pieces(tasks(ranges, sizes, wanted))
    assert sorted(found, key=lambda each: each.partition) == [each for each in ranges if len(each)]


@settings(deadline=None)
@given(batches(), wishes.filter(lambda wanted: wanted.splits))
def test_no_task_is_much_larger_than_an_even_share(
    batch: tuple[list[OffsetRange], dict[TopicPartition, float]], wanted: Parallelism
) -> None:
    ranges, sizes = batch
    size_of = {each.topic_partition: sizes.get(each.topic_partition, 256.0) for each in ranges}
    total = sum(len(each) * size_of[each.topic_partition] for each in ranges)
    for piece in pieces(tasks(ranges, sizes, wanted)):
        size = size_of[piece.topic_partition]
        # An offset more for rounding.
        assert (len(piece) - 1) * size <= 1.1 * max(total / wanted.cores, TASK_BYTES) or len(piece) == 1


@settings(deadline=None)
@given(batches(), wishes)
def test_a_small_batch_is_not_cut(
    batch: tuple[list[OffsetRange], dict[TopicPartition, float]], wanted: Parallelism
) -> None:
    ranges = [OffsetRange(each.topic, each.partition, each.start, min(each.end, each.start + 50)) for each in batch[0]]
    few = Parallelism(wanted.cores, wanted.packs)
    full = sum(1 for each in ranges if len(each))
    planned = tasks(ranges, {}, few)
    assert len(planned) == (min(full, few.cores) if few.packs else full)


def test_one_large_partition_is_shared_by_all_cores() -> None:
    sizes = {TopicPartition("topic", 0): 100.0, TopicPartition("topic", 1): 100.0}
    ranges = [OffsetRange("topic", 0, 0, 1_000_000), OffsetRange("topic", 1, 0, 10)]
    assert [len(task.ranges[0]) for task in tasks(ranges, sizes, Parallelism(cores=2))] == [500_000, 500_000, 10]


def test_large_records_count_for_more() -> None:
    """Of two partitions with as many records each, that with the larger ones is cut."""
    sizes = {TopicPartition("topic", 0): 10.0, TopicPartition("topic", 1): 10_000.0}
    ranges = [OffsetRange("topic", partition, 0, 10_000) for partition in range(2)]
    planned = pieces(tasks(ranges, sizes, Parallelism(cores=4)))
    assert Counter(piece.partition for piece in planned) == {0: 1, 1: 4}


offsets = st.dictionaries(
    st.builds(TopicPartition, st.sampled_from(["a", "b"]), st.integers(0, 5)),
    st.tuples(st.integers(0, 1 << 40), st.integers(0, 1 << 30)),
    max_size=8,
)


@settings(deadline=None)
@given(offsets, st.integers(1, 1 << 32))
def test_a_limit_is_kept_and_starves_no_partition(there: dict[TopicPartition, tuple[int, int]], limit: int) -> None:
    start = {where: begin for where, (begin, _) in there.items()}
    latest = {where: begin + count for where, (begin, count) in there.items()}
    end = limited(Limits(max_offsets=limit), start, latest, {})
    assert end.keys() == latest.keys()
    assert all(start[where] <= end[where] <= latest[where] for where in end)
    assert all(end[where] > start[where] for where in end if latest[where] > start[where])
    # A share below one offset is one: so Spark's source has it.
    assert available(start, end) <= limit + len(end)
    if available(start, latest) <= limit:
        assert end == latest


@settings(deadline=None)
@given(offsets, st.integers(1, 1 << 40), st.floats(0.01, 10_000))
def test_a_limit_in_bytes_is_one_in_offsets_where_all_weigh_the_same(
    there: dict[TopicPartition, tuple[int, int]], limit: int, size: float
) -> None:
    start = {where: begin for where, (begin, _) in there.items()}
    latest = {where: begin + count for where, (begin, count) in there.items()}
    end = limited(Limits(max_bytes=limit), start, latest, dict.fromkeys(there, size))
    assert available(start, end) * size <= limit * 1.001 + len(end) * size
    assert all(end[where] > start[where] for where in end if latest[where] > start[where])


def test_shares_are_in_proportion_to_what_there_is() -> None:
    start = {TopicPartition("t", 0): 0, TopicPartition("t", 1): 100, TopicPartition("t", 2): 7}
    latest = {TopicPartition("t", 0): 900, TopicPartition("t", 1): 200, TopicPartition("t", 2): 7}
    end = limited(Limits(max_offsets=100), start, latest, {})
    assert end == {TopicPartition("t", 0): 90, TopicPartition("t", 1): 110, TopicPartition("t", 2): 7}


def test_few_records_wait_for_more_but_not_for_ever() -> None:
    limits = Limits(min_offsets=10, max_delay_ms=1000)
    assert waits_for_more(limits, 9, since_last_batch_ms=999)
    assert not waits_for_more(limits, 10, since_last_batch_ms=0)
    assert not waits_for_more(limits, 0, since_last_batch_ms=1000)
    assert not waits_for_more(Limits(), 0, since_last_batch_ms=0)
