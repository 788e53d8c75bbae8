"""Who may publish for a query: a run claims it before it opens its first transaction, and takes over what is left.

Rules:
- No transaction of a run exists before the run is in the log. So whatever is open under an earlier generation than the
  one in force belongs to a superseded run, can never be decided any more, and may be aborted.
- For the same reason a query that is not in the log, and whose transactional ids are known to the brokers, was in a log
  that is lost. What it has published cannot be told any more: it is claimed when someone has looked at it.
- Whoever brings a claim into force finishes what was decided before, and aborts what was not. If it dies meanwhile, the
  next publisher does the rest.
"""

import shlex

from kaspar.spark.exactly_once.decisions import Owner, QueryState, Standing
from kaspar.spark.exactly_once.names import BLOCKS, JOBS, BatchName, Origin
from kaspar.spark.exactly_once.parties import LogLost, NameTaken, Parties, Superseded
from kaspar.spark.exactly_once.settling import clear_away, finish_pending

_KINDS: dict[str | None, str] = {
    JOBS: "the versions of a job (txnAppId, and the topic after the last '/')",
    BLOCKS: "the batches of kaspar.spark.batch or write_batch (query=)",
}
_ATTEMPTS = 8  # others that claim the query at the very same moment, one after the other


def claim(parties: Parties, batch: BatchName) -> QueryState:
    """Make sure that the batch's run owns its query. Raises Superseded if another run does, NameTaken if the name is
    another stream's.

    A run with a batch before the last one is not let in: there is nothing for it to do, and it would put out the run
    that is ahead of it.
    """
    state = parties.log.look(batch.query)
    for _ in range(_ATTEMPTS):
        match state.standing(batch.claim):
            case Standing.OWNER:
                return state
            case Standing.SUPERSEDED:
                raise superseded(batch, state)
            case Standing.NEW:
                _check_origin(batch, state)
                if is_over(batch, state):
                    return state
                if state.in_force is None and (state := _in_a_new_log(parties, batch)).in_force is not None:
                    continue  # another task was faster
                if (taken := take_over(parties, batch.query, batch.claim, state, batch.origin)) is not None:
                    return taken
                state = parties.log.state(batch.query)
    raise Superseded(f"{batch} is claimed by other runs again and again: stop all but one of them")


def _in_a_new_log(parties: Parties, batch: BatchName) -> QueryState:
    """The state of a query that the log does not know. Raises LogLost if it did once."""
    known = parties.coordinator.known_transactions(batch.query)
    state = parties.log.look(batch.query)  # after that: ids that were made meanwhile are those of a run that is in it
    if known and state.in_force is None:
        raise LogLost(
            f"query {batch.query} has published before, and the decision log does not know it: the log was deleted or "
            f"made anew. Whether {batch} is published already cannot be told any more. Look whether its rows are "
            f"there; then `kaspar spark transactions --bootstrap-server HOST:PORT --query {shlex.quote(batch.query)} "
            "--end` aborts what it left open, and lets it go on with this batch."
        )
    return state


def take_over(
    parties: Parties, query: str, new_claim: str, state: QueryState, origin: Origin | None = None, *, after: int = 0
) -> QueryState | None:
    """Bring the claim into force, finish what was decided, and abort what was not. None: another was faster.

    `origin` is None where the query is taken over in nobody's name: it stays with the stream that it belongs to.
    `after` is a generation that the log may not know any more: the claim's is a later one.
    """
    if origin is None and state.origin is not None:
        origin = state.origin.kept()
    generation = max(state.generation, after) + 1
    owner = Owner(query, generation, new_claim, parties.nonce, origin, state.counts_since)
    state = parties.log.append(query, [owner.record(), *state.outdated()])
    if state.standing(new_claim) is not Standing.OWNER:
        return None
    if state.in_force == owner:  # and not that of another task of the same run
        state = finish_pending(parties, query)
        clear_away(parties, query, state, generations_before=state.generation)
    return state


def release(parties: Parties, query: str) -> None:
    """Let any other stream have the query's name, and count its batches anew.

    First the query is taken over: from then on no run can decide, and what was decided is complete. The record that
    counts anew is in force only if none has claimed the query after that, so it makes nobody forget a decision that is
    not complete. The stream that had the name is refused it: it might repeat its last batch.
    """
    name = f"released by kaspar spark transactions {parties.nonce}"
    state = take_over(parties, query, name, parties.log.look(query))
    if state is not None:
        generation, last = state.generations[name] + 1, state.last  # that of a run which came meanwhile is not ours
        origin = None if state.origin is None else state.origin._replace(is_released=True)
        owner = Owner(query, generation, f"{name} to others", parties.nonce, origin, counts_since=generation)
        state = parties.log.append(query, [owner.record()])
        if state.in_force == owner:
            if last is not None:
                parties.log.append(query, [(last.key, None)])
            return
    raise Superseded(f"query {query} was taken over by another run just now: stop it, and release the name again")


def _check_origin(batch: BatchName, state: QueryState) -> None:
    if state.origin is None:
        return
    if state.origin.is_released:
        if state.origin.stream == batch.origin.stream:
            raise NameTaken(
                f"the name {batch.query} was released for others (kaspar spark transactions --release), and what "
                f"{_numbered_by(batch.origin)} has published under it is not known any more: give it a new name"
            )
        return
    if state.origin.stream != batch.origin.stream:
        raise NameTaken(
            f"the name {batch.query} belongs to {_numbered_by(state.origin)}, and this is "
            f"{_numbered_by(batch.origin)}: batch {batch.batch_id} of the one is not batch {batch.batch_id} of the "
            "other, and would be taken for published. Give this one a name of its own (query= or txnAppId). If it is "
            "to take the name over, stop the other for good and run `kaspar spark transactions --bootstrap-server "
            f"HOST:PORT --query {shlex.quote(batch.query)} --end --release`: then batches are counted anew."
        )
    if None not in (batch.origin.kind, state.origin.kind) and batch.origin.kind != state.origin.kind:
        raise NameTaken(
            f"the name {batch.query} counts {_KINDS[state.origin.kind]}, and this is one of "
            f"{_KINDS[batch.origin.kind]}: the numbers of the one mean nothing to the other. Give this one another name"
        )
    if batch.origin.once is not None and state.origin.once == batch.origin.once:
        raise NameTaken(
            f"{batch} was begun by another write of this run already, so this one would be taken for published: give "
            "each write of a batch a txnAppId of its own, or put all of them into one `with kaspar.spark.batch(...)` "
            "block"
        )


def _numbered_by(origin: Origin) -> str:
    if origin.stream is None:
        return "a program that numbers its batches itself, outside of foreachBatch or in a thread of its own"
    return f"the streaming query {origin.stream} (the id in its checkpoint)"


def superseded(batch: BatchName, state: QueryState) -> Superseded:
    return Superseded(
        f"another run ({state.owner}) of query {batch.query} has started after this one ({batch.claim}), which may "
        f"publish nothing more: batch {batch.batch_id} is left to it. Only one run of a query may use its checkpoint."
    )


def is_over(batch: BatchName, state: QueryState) -> bool:
    """Whether a later batch was decided."""
    return state.last is not None and batch.batch_id < state.last.batch.batch_id
