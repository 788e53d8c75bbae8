"""Which run may publish for a query: a run claims it before it opens its first transaction, and takes over leftovers.

Rules:
- No transaction of a run exists before its claim is in the log. So a transaction that is open under an earlier
  generation than the one in force belongs to a superseded run, can never be decided, and may be aborted.
- For the same reason, a query that is not in the log but whose transactional ids the brokers know was in a log that is
  lost. Which of its batches were published is unknown: it can be claimed only after somebody has checked its topics.
- The process that brings a claim into force finishes what was decided before, and aborts what was not. If it dies
  meanwhile, the next publisher does the rest.
"""

import shlex

from kaspar.exactly_once.decisions import Owner, QueryState, Standing
from kaspar.exactly_once.errors import LogLost, NameTaken, Superseded
from kaspar.exactly_once.names import BLOCKS, JOBS, BatchName, Origin
from kaspar.exactly_once.participants import Participants
from kaspar.exactly_once.settling import abort_leftovers, finish_pending

_KINDS: dict[str | None, str] = {
    JOBS: "the versions of a job (txnAppId, and the topic after the last '/')",
    BLOCKS: "the batches of kaspar.spark.batch or write_batch (query=)",
}
_ATTEMPTS = 8  # against other runs that claim the query at the same moment


def claim(participants: Participants, batch: BatchName) -> QueryState:
    """Make sure that the batch's run owns its query. Raises Superseded if another run does, NameTaken if the name
    belongs to another stream.

    A run whose batch is before the last one claims nothing: there is nothing for it to do, and it would supersede the
    run that is ahead of it.
    """
    state = participants.log.read_to_end(batch.query)
    for _ in range(_ATTEMPTS):
        match state.standing(batch.claim):
            case Standing.OWNER:
                return state
            case Standing.SUPERSEDED:
                raise superseded(batch, state)
            case Standing.NEW:
                _check_origin(batch, state)
                if is_outdated(batch, state):
                    return state
                if state.in_force is None and (state := _state_in_new_log(participants, batch)).in_force is not None:
                    continue  # another task was faster
                if (taken := take_over(participants, batch.query, batch.claim, state, batch.origin)) is not None:
                    return taken
                state = participants.log.state(batch.query)
    raise Superseded(f"other runs keep claiming query {batch.query}: stop all but one of them")


def _state_in_new_log(participants: Participants, batch: BatchName) -> QueryState:
    """The state of a query that is not in the log. Raises LogLost if it was in an earlier log."""
    known = participants.coordinator.known_transactions(batch.query)
    # Read after the list: an id that was created meanwhile belongs to a run that is in the log by now.
    state = participants.log.read_to_end(batch.query)
    if known and state.in_force is None:
        raise LogLost(
            f"query {batch.query} has published before, but is not in the decision log: the log was deleted or "
            f"recreated. Whether {batch} is already published is unknown. Check whether its rows are in the topics; "
            f"then `kaspar spark transactions --bootstrap-server HOST:PORT --query {shlex.quote(batch.query)} --end` "
            "aborts what it left open, and lets it continue with this batch."
        )
    return state


def take_over(
    participants: Participants,
    query: str,
    new_claim: str,
    state: QueryState,
    origin: Origin | None = None,
    *,
    after: int = 0,
) -> QueryState | None:
    """Bring the claim into force, finish what was decided, and abort what was not. None if another claim was faster.

    `origin` is None if the query is taken over without a new run: it keeps the origin that it has. `after` is a
    generation that the log may have lost: the new claim gets a later one.
    """
    if origin is None and state.origin is not None:
        origin = state.origin.kept()
    generation = max(state.generation, after) + 1
    owner = Owner(query, generation, new_claim, participants.nonce, origin, state.counts_since)
    state = participants.log.append(query, [owner.record(), *state.outdated()])
    if state.standing(new_claim) is not Standing.OWNER:
        return None
    if state.in_force == owner:  # and not the claim of another task of the same run
        state = finish_pending(participants, query)
        abort_leftovers(participants, query, state, generations_before=state.generation)
    return state


def release(participants: Participants, query: str) -> None:
    """Release the query's name for any other stream, whose batches are then counted from the start.

    First the query is taken over: from then on no run can decide, and all decisions are complete. The record that
    restarts the count is in force only if no run has claimed the query since, so no incomplete decision is forgotten.
    The stream that had the name cannot claim it again, because it might repeat its last batch.
    """
    name = f"released {participants.nonce}"
    state = take_over(participants, query, name, participants.log.read_to_end(query))
    if state is not None:
        generation, last = state.generations[name] + 1, state.last  # not that of a later claim
        origin = None if state.origin is None else state.origin._replace(is_released=True)
        owner = Owner(query, generation, f"{name} to others", participants.nonce, origin, counts_since=generation)
        state = participants.log.append(query, [owner.record()])
        if state.in_force == owner:
            if last is not None:
                participants.log.append(query, [(last.key, None)])
            return
    raise Superseded(f"query {query} was just taken over by another run: stop it, and release the name again")


def _check_origin(batch: BatchName, state: QueryState) -> None:
    if state.origin is None:
        return
    if state.origin.is_released:
        if state.origin.stream == batch.origin.stream:
            raise NameTaken(
                f"the name {batch.query} was released for others (kaspar spark transactions --release), so what "
                f"{_numbered_by(batch.origin)} has published under it is unknown: give it a new name"
            )
        return
    if state.origin.stream != batch.origin.stream:
        raise NameTaken(
            f"the name {batch.query} belongs to {_numbered_by(state.origin)}, and this is "
            f"{_numbered_by(batch.origin)}: its batch {batch.batch_id} would be taken for the other's batch "
            f"{batch.batch_id}, which is published. Give this one a name of its own (query= or txnAppId). To take over "
            "the name, stop the other for good and run `kaspar spark transactions --bootstrap-server HOST:PORT --query "
            f"{shlex.quote(batch.query)} --end --release`: batches are then counted from the start."
        )
    if None not in (batch.origin.kind, state.origin.kind) and batch.origin.kind != state.origin.kind:
        raise NameTaken(
            f"the name {batch.query} counts {_KINDS[state.origin.kind]}, and this is one of "
            f"{_KINDS[batch.origin.kind]}, which are numbered differently: use another name"
        )
    if batch.origin.once is not None and state.origin.once == batch.origin.once:
        raise NameTaken(
            f"another write of this run has already begun {batch}, so this one would be taken for published: give each "
            "write of a batch a txnAppId of its own, or put all of them into one `with kaspar.spark.batch(...)` block"
        )


def _numbered_by(origin: Origin) -> str:
    if origin.stream is None:
        return "a program that numbers its batches itself, outside foreachBatch or in a thread of its own"
    return f"the streaming query {origin.stream} (the id in its checkpoint)"


def superseded(batch: BatchName, state: QueryState) -> Superseded:
    return Superseded(
        f"another run ({state.owner}) of query {batch.query} has started after this one ({batch.claim}), which may "
        f"publish nothing more: batch {batch.batch_id} is left to that run. Only one run of a query may use its "
        "checkpoint."
    )


def is_outdated(batch: BatchName, state: QueryState) -> bool:
    """Whether a later batch was decided."""
    return state.last is not None and batch.batch_id < state.last.batch.batch_id


def refuse_outdated(batch: BatchName, state: QueryState) -> None:
    """Raises Superseded if a later batch was decided. For streams only: they never repeat a batch before the last
    published one unless the checkpoint was reset. A job with an earlier version is a repetition, which has nothing to
    write."""
    if is_outdated(batch, state):
        raise Superseded(
            f"{batch} is over: a later batch was published. If the checkpoint was reset on purpose, start the query "
            "with a new checkpoint and, where it was given a name (query=), a new name: that makes it another query."
        )
