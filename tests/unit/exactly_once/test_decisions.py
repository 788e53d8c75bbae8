"""The replay of the decision log: records in, the state of a query out."""

import json
from dataclasses import replace

import pytest

from kaspar.base.errors import KasparError
from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.exactly_once.decisions import (
    OWNERS_KEPT,
    BatchDecision,
    DecidedTransaction,
    LogRecord,
    Owner,
    QueryState,
    QueryStates,
    Standing,
)
from kaspar.exactly_once.names import BLOCKS, BatchName, Origin

QUERY = "query"


def owner(generation: int, claim: str, nonce: str = "nonce") -> Owner:
    return Owner(QUERY, generation, claim, nonce)


def decision(generation: int, claim: str, batch_id: int, nonce: str = "nonce") -> BatchDecision:
    transaction = DecidedTransaction(f"id-{generation}-{batch_id}", ProducerIdAndEpoch(7, 3), 0, ("orders", "counts"))
    return BatchDecision(BatchName(QUERY, claim, batch_id), generation, nonce, (transaction,))


def replayed(*records: LogRecord) -> QueryState:
    states = QueryStates()
    for key, value in records:
        states.replay(key, value)
    return states.state(QUERY)


def test_a_decision_of_the_owner_is_valid_and_is_read_as_it_was_written() -> None:
    wanted = decision(1, "run", 5)
    state = replayed(owner(1, "run").record(), wanted.record())
    assert state.pending == wanted
    assert state.is_decided(5)
    assert not state.is_decided(6)


def test_a_decision_of_a_superseded_run_is_void() -> None:
    state = replayed(owner(1, "old").record(), owner(2, "new").record(), decision(1, "old", 5).record())
    assert state.last is None
    assert (state.standing("old"), state.standing("new")) == (Standing.SUPERSEDED, Standing.OWNER)
    assert state.standing("another") is Standing.NEW


def test_a_decision_from_before_it_was_superseded_stays_valid() -> None:
    wanted = decision(1, "old", 5)
    assert replayed(owner(1, "old").record(), wanted.record(), owner(2, "new").record()).pending == wanted


def test_the_first_decision_of_a_batch_wins_and_no_earlier_batch_follows() -> None:
    first = decision(1, "run", 5)
    state = replayed(
        owner(1, "run").record(),
        first.record(),
        decision(1, "run", 5, "again").record(),
        decision(1, "run", 4).record(),
    )
    assert state.last == first


def test_of_two_owners_of_one_generation_the_first_is_in_force_and_an_earlier_generation_never_is() -> None:
    state = replayed(owner(2, "first").record(), owner(2, "second").record(), owner(1, "late").record())
    assert state.owner == "first"
    assert state.standing("second") is Standing.NEW


def test_a_claim_that_several_tasks_make_is_in_force_once() -> None:
    state = replayed(owner(1, "run", "a").record(), owner(2, "next").record(), owner(1, "run", "b").record())
    assert state.owner == "next"


def test_a_completion_is_a_fact_even_where_its_decision_was_compacted_away() -> None:
    state = replayed(owner(2, "new").record(), decision(1, "old", 5).completion())
    assert state.is_decided(5)
    assert state.pending is None


def test_a_completion_makes_the_one_before_it_needless() -> None:
    first, second = decision(1, "run", 5), decision(1, "run", 6)
    state = replayed(owner(1, "run").record(), first.completion(), second.record())
    assert state.completion() == [second.completion(), (first.key, None)]


def test_a_completion_that_comes_late_changes_nothing() -> None:
    later = decision(2, "new", 6)
    state = replayed(
        owner(1, "old").record(), owner(2, "new").record(), later.record(), decision(1, "old", 5).completion()
    )
    assert state.pending == later


def test_owners_far_back_are_deleted_and_those_close_by_are_known() -> None:
    state = replayed(*(owner(generation, f"run{generation}").record() for generation in range(1, 20)))
    outdated = dict(state.outdated())
    assert set(outdated) == {owner(generation, f"run{generation}").key for generation in range(1, 20 - OWNERS_KEPT)}
    assert state.standing(f"run{20 - OWNERS_KEPT}") is Standing.SUPERSEDED


def test_the_owner_of_a_pending_decision_is_kept_however_far_back_it_is() -> None:
    wanted = decision(1, "run1", 5)
    records = [owner(1, "run1").record(), wanted.record()]
    records += [owner(generation, f"run{generation}").record() for generation in range(2, 40)]
    assert owner(1, "run1").key not in dict(replayed(*records).outdated())
    assert owner(1, "run1").key in dict(replayed(*records, wanted.completion()).outdated())


def test_what_a_decision_covers_and_notes_is_known_when_it_is_complete() -> None:
    transaction = decision(1, "run", 5).transactions[0]
    wanted = BatchDecision.of(BatchName(QUERY, "run", 5), 1, "nonce", [transaction], ["orders", "*"], "read to 7")
    state = replayed(owner(1, "run").record(), wanted.record())
    assert state.pending == wanted
    state = replayed(owner(1, "run").record(), wanted.record(), wanted.completion())
    assert state.last is not None
    assert state.last.covers == ("orders", "*")
    assert state.last.note == "read to 7"
    assert state.last.is_about([transaction])
    assert not state.last.is_about([transaction._replace(producer=ProducerIdAndEpoch(7, 4))])


def test_a_log_of_before_streams_and_topics_were_kept_is_read() -> None:
    state = replayed(
        (b'["owner","query",1,"run","nonce"]', b'{"format":1}'),
        (
            b'["decision","query",5,1,"run","nonce"]',
            b'{"format":1,"complete":false,"transactions":[["id-1-5",7,3,0,["orders","counts"]]]}',
        ),
    )
    assert state.pending == decision(1, "run", 5)
    assert (state.origin, state.counts_since) == (None, 0)


def test_an_owner_that_restarts_its_count_drops_earlier_decisions() -> None:
    old, new = decision(1, "old", 5), decision(3, "new", 0)
    released = replace(owner(2, "released"), counts_since=2)
    next_owner = replace(owner(3, "new"), origin=Origin("stream"), counts_since=2)
    records = [owner(1, "old").record(), old.completion(), released.record()]
    assert replayed(*records).last is None
    records += [old.completion(), next_owner.record(), new.record()]
    assert replayed(*records).pending == new
    assert replayed(*records[2:]).pending == new, "also where compaction has deleted what was before"


def test_queries_do_not_touch_each_other() -> None:
    states = QueryStates()
    for query in ("one", "other"):
        states.replay(*Owner(query, 1, f"run of {query}", "nonce").record())
    assert (states.state("one").owner, states.state("other").owner) == ("run of one", "run of other")
    assert sorted(states.queries()) == ["one", "other"]


def test_a_job_that_is_deleted_from_the_log_is_not_known_any_more() -> None:
    states = QueryStates()
    done = decision(1, "job", 0)
    for record in (owner(1, "job").record(), done.record(), done.completion(), (owner(1, "job").key, None)):
        states.replay(*record)
    assert states.queries() == [QUERY]
    states.replay(done.key, None)
    assert states.queries() == []
    assert states.state(QUERY) == QueryState()


def test_a_completion_that_is_not_the_last_is_deleted_without_a_trace() -> None:
    first, second = decision(1, "run", 5), decision(1, "run", 6)
    state = replayed(owner(1, "run").record(), first.completion(), second.completion(), (first.key, None))
    assert (state.last, state.pending) == (replayed(second.completion()).last, None)


def test_of_a_decision_that_is_complete_no_transactions_are_kept() -> None:
    wanted = decision(1, "run", 5)
    state = replayed(owner(1, "run").record(), wanted.record(), wanted.completion())
    assert state.last is not None
    assert (state.last.key, state.last.transactions) == (wanted.key, ())


@pytest.mark.parametrize("record", [(b'["lease","query"]', b"{}"), (owner(1, "run").key, b'{"format":2}')])
def test_a_record_of_a_newer_version_is_not_guessed_at(record: LogRecord) -> None:
    with pytest.raises(KasparError, match="newer version"):
        replayed(record)


def test_whether_jobs_or_blocks_are_counted_stands_beside_what_earlier_versions_read() -> None:
    new = replace(owner(1, "new"), origin=Origin("stream", kind=BLOCKS))
    key, value = new.record()
    assert value is not None
    assert json.loads(value) == {"format": 1, "origin": ["stream", None, False], "kind": BLOCKS}
    states = QueryStates()
    states.replay(key, value)
    assert states.state(QUERY).in_force == new
