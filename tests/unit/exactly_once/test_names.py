"""Transactional ids: of which query, and of which of its runs."""

import pytest

from kaspar.exactly_once.attempt import Slots
from kaspar.exactly_once.names import (
    BLOCKS,
    JOBS,
    BatchName,
    Origin,
    TransactionName,
    in_stream,
    is_unnamed_job,
    named_job,
    prefix_of,
    unnamed_job,
)


@pytest.mark.parametrize("query", ["7b1c", "a:b", "sales.daily", "Größe 100%", "../x"])
def test_an_id_contains_its_query_and_generation(query: str) -> None:
    name = TransactionName(query, 12, "worker", 3)
    assert TransactionName.of(str(name)) == name
    assert str(name).startswith(prefix_of(query))


def test_no_query_has_ids_that_begin_like_another_ones() -> None:
    assert not str(TransactionName("a:1", 1, "w", 0)).startswith(prefix_of("a"))
    assert not str(TransactionName("ab", 1, "w", 0)).startswith(prefix_of("a"))


@pytest.mark.parametrize("text", ["orders-17", "kaspar-spark:", "kaspar-spark:q:x:w:0", "kaspar-spark:q:1:w"])
def test_ids_of_others_are_not_ours(text: str) -> None:
    assert TransactionName.of(text) is None


def test_a_slot_is_used_again_in_a_later_batch_and_never_in_the_same() -> None:
    slots = Slots("worker")
    first, second = BatchName("query", "run", 1), BatchName("query", "run", 2)
    in_first = [slots.take(first, 1), slots.take(first, 1)]
    assert in_first[0] != in_first[1]
    assert [slots.take(second, 1), slots.take(second, 1)] == in_first
    assert slots.take(second, 1) not in in_first
    assert slots.take(first, 2) not in in_first


def test_a_named_write_inside_foreach_batch_belongs_to_its_stream() -> None:
    batch = named_job("nightly", "orders", 7, "claim")
    run = "0f8fad5b-d9cb-469f-a165-70867728950e"
    assert in_stream(batch, None, None) == batch
    assert in_stream(batch, "stream", run) == batch._replace(origin=Origin("stream", f"{run} 7", kind=JOBS))
    assert in_stream(batch, "stream", "a job group of the program's") == batch._replace(
        origin=Origin("stream", kind=JOBS)
    )
    of_block = batch._replace(origin=Origin("stream", kind=BLOCKS))
    assert in_stream(of_block, "stream", run) == of_block, "which takes care of second blocks itself"


def test_an_unnamed_job_is_distinguished_from_one_with_a_similar_name() -> None:
    assert is_unnamed_job(unnamed_job("claim"))
    assert not is_unnamed_job(BatchName("job-claim", "another", 0))
