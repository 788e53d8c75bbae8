"""The driver's part: decide about a batch, commit it, and leave nothing behind.

    decide      append the decision, if the run owns the query and the batch is not decided yet; the log's order says
                whether it is valid. From here on the batch is published, whatever happens.
    commit      end every transaction that it names
    complete    note that in the log, before the next batch begins: only then are transactional ids used again
    clear away  abort what losing attempts and earlier runs have left open

A batch that is decided is not decided again: what was decided is finished, and whoever wrote something else for it is
told that this was not published.
"""

import logging
from collections.abc import Sequence

from kaspar.base.errors import KasparError, Refused, invariant
from kaspar.spark.exactly_once.deadlines import check_open
from kaspar.spark.exactly_once.decisions import DecidedTransaction, Decision, QueryState, Standing
from kaspar.spark.exactly_once.names import BatchName, TransactionName, is_unnamed_job
from kaspar.spark.exactly_once.ownership import claim, superseded, take_over
from kaspar.spark.exactly_once.parties import DecidedNotCommitted, NotPublished, Parties, Superseded
from kaspar.spark.exactly_once.settling import clear_away, finish_pending

log = logging.getLogger(__name__)


def publish(
    parties: Parties,
    batch: BatchName,
    transactions: Sequence[DecidedTransaction],
    covers: Sequence[str] | None = None,
) -> None:
    """All tasks of the batch have finished: make what they wrote visible, once, all of it or nothing. `covers` are the
    topics of its writes.

    Raises Superseded if another run owns the query, NotPublished if the batch was published without these,
    DecidedNotCommitted if it is left to the next run to make it visible, and DecidedButAborted if a decision cannot be
    carried out any more.
    """
    try:
        state = _publish(parties, batch, transactions, covers)
    except Superseded:
        state = parties.log.state(batch.query)
        _clear_if_possible(parties, batch.query, state, generations_before=state.generation)
        raise
    if transactions:
        clear_own(parties, batch, state)


def clear_own(parties: Parties, batch: BatchName, state: QueryState) -> None:
    """Abort what the run has left open, and those before it. None of its tasks is wanted any more.

    Up to its own generation and no further: a newer run may have begun by now, whose transactions are its own affair.
    """
    generation = state.generations.get(batch.claim)
    if generation is not None:
        _clear_if_possible(parties, batch.query, state, generations_before=generation + 1)


def _clear_if_possible(parties: Parties, query: str, state: QueryState, *, generations_before: int) -> None:
    """What becomes of the batch is settled by now: a broker that is away does not make it fail. The next does it."""
    try:
        clear_away(parties, query, state, generations_before=generations_before)
    except (KasparError, OSError) as problem:
        log.warning(f"What query {query} left open is aborted with its next batch, and not yet: {problem}.")


def give_up(parties: Parties, batch: BatchName) -> QueryState:
    """The batch failed: abort what its tasks wrote, unless it was decided before that. What the log says after it.

    A decision whose append was not answered may still reach the log. So the query is taken over first, in the name of
    nobody: from then on the failed run's decisions are void.
    """
    state = parties.log.look(batch.query)
    if state.standing(batch.claim) is Standing.OWNER:
        take_over(parties, batch.query, f"after {batch.claim} {parties.nonce}", state)
    return parties.log.state(batch.query)


def forget(parties: Parties, batch: BatchName) -> None:
    """Delete what the log has of a job that is complete and has no name to come back under. It is published, whether
    that can be done or not."""
    state = parties.log.state(batch.query)
    invariant(state.is_complete, "what is decided is finished first")
    known = [owner.key for owner in state.owners] + ([state.last.key] if state.last is not None else [])
    if not known:
        return  # another has carried it out, and forgotten it
    try:
        parties.log.append(batch.query, [(key, None) for key in known])
    except (KasparError, OSError) as problem:
        log.warning(f"The decision log keeps what it has of the job {batch.query}, which is published: {problem}.")


def _publish(
    parties: Parties, batch: BatchName, transactions: Sequence[DecidedTransaction], covers: Sequence[str] | None
) -> QueryState:
    state = parties.log.state(batch.query)
    if state.standing(batch.claim) is not Standing.OWNER:
        _enter(parties, batch, is_written=bool(transactions))
    state = finish_pending(parties, batch.query)
    if not transactions:
        return state
    if state.is_decided(batch.batch_id):
        _check_published(batch, state, transactions)
        return state
    _decide(parties, batch, transactions, state.generation, covers)
    try:
        return finish_pending(parties, batch.query)
    except (Refused, OSError) as problem:
        raise DecidedNotCommitted(
            f"{batch} is decided, and could not be carried out to its end: {problem}. The next run of any query does "
            "that, or `kaspar spark transactions --bootstrap-server HOST:PORT --finish`. It counts as published: do "
            "not repeat a job for that."
        ) from problem


def _check_published(batch: BatchName, state: QueryState, transactions: Sequence[DecidedTransaction]) -> None:
    """A commit may be repeated. Other writes of the batch, or of one before it, were not published, and never will."""
    if state.last is None or state.last.batch.batch_id != batch.batch_id or not state.last.is_about(transactions):
        raise NotPublished(
            f"{batch} or one after it was published without what was written now, which is aborted: all writes of a "
            "batch are published together, and batches one after the other"
        )


def _enter(parties: Parties, batch: BatchName, *, is_written: bool) -> None:
    """A batch that was written was claimed before that. If the log does not know its run any more, so many others have
    followed that it was forgotten, and what it wrote was aborted."""
    if not is_written:
        claim(parties, batch)
    elif (state := parties.log.look(batch.query)).standing(batch.claim) is not Standing.OWNER:
        raise superseded(batch, state)


def _decide(
    parties: Parties,
    batch: BatchName,
    transactions: Sequence[DecidedTransaction],
    generation: int,
    covers: Sequence[str] | None,
) -> None:
    _check_generation(batch, transactions, generation)
    check_open(parties, batch, transactions)
    decision = Decision.of(batch, generation, parties.nonce, transactions, covers)
    state = parties.log.append(batch.query, [decision.record()])
    if is_unnamed_job(batch) and state.in_force is None:
        return  # another has carried the decision out and forgotten the job: nothing else deletes a job's owner
    if state.last is None or state.last.key != decision.key:
        raise superseded(batch, state)


def _check_generation(batch: BatchName, transactions: Sequence[DecidedTransaction], generation: int) -> None:
    """A run that was forgotten and came back has tasks of two generations: what those of the first wrote is aborted."""
    names = {each.task: TransactionName.of(each.transactional_id) for each in transactions}
    gone = [task for task, name in names.items() if name is None or name.generation != generation]
    if gone:
        raise NotPublished(
            f"other runs came between the tasks of {batch}, and what tasks {', '.join(map(str, gone))} wrote was "
            "aborted. Nothing of it is published, and it is written again when the query is started again."
        )
