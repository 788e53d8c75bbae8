"""The driver's part: decide a batch, commit it, and leave nothing open.

    decide      append the decision, if the run owns the query and the batch is not decided yet; the order of the log
                determines whether it is valid. From here on the batch is published, whatever happens.
    commit      end every transaction that it names
    complete    record that in the log before the next batch begins: only then are transactional ids reused
    clean up    abort what losing attempts and earlier runs have left open

A decided batch is not decided again: the existing decision is finished. A run that wrote something else for the batch
gets an error, because that was not published.
"""

import logging
from collections.abc import Sequence

from kaspar.base.errors import KasparError, Refused, invariant
from kaspar.exactly_once.deadlines import check_open
from kaspar.exactly_once.decisions import BatchDecision, DecidedTransaction, QueryState, Standing
from kaspar.exactly_once.errors import DecidedNotCommitted, NotPublished, Superseded
from kaspar.exactly_once.names import BatchName, TransactionName, is_unnamed_job
from kaspar.exactly_once.ownership import claim, superseded, take_over
from kaspar.exactly_once.participants import Participants
from kaspar.exactly_once.settling import abort_leftovers, finish_pending

log = logging.getLogger(__name__)


def publish(
    participants: Participants,
    batch: BatchName,
    transactions: Sequence[DecidedTransaction],
    covers: Sequence[str] | None = None,
    note: str | None = None,
) -> None:
    """Make visible, once and atomically, what the tasks of the batch wrote, after all of them have finished. `covers`
    are the topics of its writes; `note` is kept with the decision.

    Raises Superseded if another run owns the query, NotPublished if the batch was published without these transactions,
    DecidedNotCommitted if the next run has to commit it, and DecidedButAborted if a decision can no longer be carried
    out.
    """
    try:
        state = _publish(participants, batch, transactions, covers, note)
    except Superseded:
        state = participants.log.state(batch.query)
        _try_abort_leftovers(participants, batch.query, state, generations_before=state.generation)
        raise
    if transactions:
        abort_own_leftovers(participants, batch, state)


def abort_own_leftovers(participants: Participants, batch: BatchName, state: QueryState) -> None:
    """Abort the transactions that this run and earlier ones have left open. None of its tasks is needed any more.

    Transactions of later generations are left alone: a newer run may have begun by now.
    """
    generation = state.generations.get(batch.claim)
    if generation is not None:
        _try_abort_leftovers(participants, batch.query, state, generations_before=generation + 1)


def _try_abort_leftovers(participants: Participants, query: str, state: QueryState, *, generations_before: int) -> None:
    """Abort leftovers; a failure is only logged. The outcome of the batch is known by now, so an unreachable broker
    must not fail it. The next batch tries again."""
    try:
        abort_leftovers(participants, query, state, generations_before=generations_before)
    except (KasparError, OSError) as problem:
        log.warning(
            f"Leftover transactions of query {query} could not be aborted, and will be with its next batch: {problem}."
        )


def abort_batch(participants: Participants, batch: BatchName) -> QueryState:
    """Abort what the tasks of a failed batch wrote, unless it is already decided. Returns the state after that.

    A decision whose append had no response may still reach the log. So the query is first taken over without a
    new run: from then on decisions of the failed run are void.
    """
    state = participants.log.read_to_end(batch.query)
    if state.standing(batch.claim) is Standing.OWNER:
        take_over(participants, batch.query, f"after {batch.claim} {participants.nonce}", state)
    return participants.log.state(batch.query)


def forget_job(participants: Participants, batch: BatchName) -> None:
    """Delete the records of a complete, unnamed job. A failure is only logged: the job is published."""
    state = participants.log.state(batch.query)
    invariant(state.is_complete, "its decision is complete")
    known = [owner.key for owner in state.owners] + ([state.last.key] if state.last is not None else [])
    if not known:
        return  # another process has carried it out and deleted it
    try:
        participants.log.append(batch.query, [(key, None) for key in known])
    except (KasparError, OSError) as problem:
        log.warning(f"The records of job {batch.query}, which is published, stay in the decision log: {problem}.")


def _publish(
    participants: Participants,
    batch: BatchName,
    transactions: Sequence[DecidedTransaction],
    covers: Sequence[str] | None,
    note: str | None,
) -> QueryState:
    state = participants.log.state(batch.query)
    if state.standing(batch.claim) is not Standing.OWNER:
        _enter(participants, batch, is_written=bool(transactions))
    state = finish_pending(participants, batch.query)
    if not transactions:
        return state
    if state.is_decided(batch.batch_id):
        _check_published(batch, state, transactions)
        return state
    _decide(participants, batch, transactions, state.generation, covers, note)
    try:
        return finish_pending(participants, batch.query)
    except (Refused, OSError) as problem:
        raise DecidedNotCommitted(
            f"{batch} is decided, but not all of it could be committed: {problem}. The next run of any query commits "
            "the rest, or `kaspar spark transactions --bootstrap-server HOST:PORT --finish` does. It counts as "
            "published: do not repeat the job."
        ) from problem


def _check_published(batch: BatchName, state: QueryState, transactions: Sequence[DecidedTransaction]) -> None:
    """Raises NotPublished unless the decision of the batch names these transactions, in which case only the commit is
    repeated. Other writes of a decided batch, or of an earlier one, can never be published."""
    if state.last is None or state.last.batch.batch_id != batch.batch_id or not state.last.is_about(transactions):
        raise NotPublished(
            f"{batch} or a later one was published without what was written now, which is aborted: all writes of a "
            "batch are published together, and batches in order"
        )


def _enter(participants: Participants, batch: BatchName, *, is_written: bool) -> None:
    """Claim the query for a batch without writes. A batch with writes was claimed before: if its run is no longer in
    the log, many others have followed since, and what it wrote was aborted."""
    if not is_written:
        claim(participants, batch)
    elif (state := participants.log.read_to_end(batch.query)).standing(batch.claim) is not Standing.OWNER:
        raise superseded(batch, state)


def _decide(
    participants: Participants,
    batch: BatchName,
    transactions: Sequence[DecidedTransaction],
    generation: int,
    covers: Sequence[str] | None,
    note: str | None,
) -> None:
    _check_generation(batch, transactions, generation)
    check_open(participants, batch, transactions)
    decision = BatchDecision.of(batch, generation, participants.nonce, transactions, covers, note)
    state = participants.log.append(batch.query, [decision.record()])
    if is_unnamed_job(batch) and state.in_force is None:
        return  # another process has carried out the decision and deleted the job: nothing else deletes its owner
    if state.last is None or state.last.key != decision.key:
        raise superseded(batch, state)


def _check_generation(batch: BatchName, transactions: Sequence[DecidedTransaction], generation: int) -> None:
    """Raises if the transactions are of several generations. This happens if the run was deleted from the log and
    claimed the query again: its earlier transactions were aborted."""
    names = {each.task: TransactionName.of(each.transactional_id) for each in transactions}
    gone = [task for task, name in names.items() if name is None or name.generation != generation]
    if gone:
        raise NotPublished(
            f"other runs claimed the query between the tasks of {batch}, and what tasks {', '.join(map(str, gone))} "
            "wrote was aborted. Nothing of it is published, and it is written again when the query is restarted."
        )
