"""Who may publish for a query: a run claims it before it opens its first transaction, and takes over what is left.

Rules:
- No transaction of a run exists before the run is in the log. So whatever is open under an earlier generation than the
  one in force belongs to a superseded run, can never be decided any more, and may be aborted.
- Whoever brings a claim into force finishes what was decided before, and aborts what was not. If it dies meanwhile, the
  next publisher does the rest.
"""

from kaspar.spark.exactly_once.decisions import Owner, QueryState, Standing
from kaspar.spark.exactly_once.names import BatchName
from kaspar.spark.exactly_once.parties import Parties, Superseded
from kaspar.spark.exactly_once.settling import clear_away, finish_pending

_ATTEMPTS = 8  # others that claim the query at the very same moment, one after the other


def claim(parties: Parties, batch: BatchName) -> QueryState:
    """Make sure that the batch's run owns its query. Raises Superseded if another run does.

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
                if is_over(batch, state):
                    return state
                if (taken := take_over(parties, batch.query, batch.claim, state)) is not None:
                    return taken
                state = parties.log.state(batch.query)
    raise Superseded(f"{batch} is claimed by other runs again and again: stop all but one of them")


def take_over(parties: Parties, query: str, new_claim: str, state: QueryState) -> QueryState | None:
    """Bring the claim into force, finish what was decided, and abort what was not. None: another was faster."""
    owner = Owner(query, state.generation + 1, new_claim, parties.nonce)
    state = parties.log.append(query, [owner.record(), *state.outdated()])
    if state.standing(new_claim) is not Standing.OWNER:
        return None
    if state.in_force == owner:  # and not that of another task of the same run
        state = finish_pending(parties, query)
        clear_away(parties, query, state, generations_before=state.generation)
    return state


def superseded(batch: BatchName, state: QueryState) -> Superseded:
    return Superseded(
        f"another run ({state.owner}) of query {batch.query} has started after this one ({batch.claim}), which may "
        f"publish nothing more: batch {batch.batch_id} is left to it. Only one run of a query may use its checkpoint."
    )


def is_over(batch: BatchName, state: QueryState) -> bool:
    """Whether a later batch was decided."""
    return state.last is not None and batch.batch_id < state.last.batch.batch_id
