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
    """Make sure that the batch's run owns its query. Raises Superseded if another run does."""
    state = parties.log.look(batch.query)
    for _ in range(_ATTEMPTS):
        match state.standing(batch.claim):
            case Standing.OWNER:
                return state
            case Standing.SUPERSEDED:
                raise superseded(batch, state)
            case Standing.NEW:
                _refuse_what_is_long_over(batch, state)
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


def _refuse_what_is_long_over(batch: BatchName, state: QueryState) -> None:
    """A run that was never heard of, with a batch that is earlier than the last: it is a late comer, or its checkpoint
    was set back."""
    if state.last is not None and batch.batch_id < state.last.batch.batch_id:
        raise Superseded(
            f"{batch} is over: batch {state.last.batch.batch_id} was published after it. If its checkpoint was "
            "set back on purpose, start the query with a new checkpoint, which makes it another query."
        )
