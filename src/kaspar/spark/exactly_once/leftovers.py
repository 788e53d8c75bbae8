"""What queries have left behind: found, shown, and ended by hand.

Queries end what they left themselves, when they run again. One that never does may leave prepared transactions, which
hold up read_committed readers. To end them is to take the query over: what was decided is committed, everything else is
aborted, and a run of it that is still there can publish nothing more.

A query that never runs again may also leave a decision by half, and so may a job without a name. Anyone may carry out a
decision, so the next run of whatever query does. What a job without a name had not decided cannot be told from that of
a job which still runs: it is ended by hand.
"""

import logging
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from kaspar.base.errors import KasparError
from kaspar.client.cluster import Client
from kaspar.client.transactions import DescribedTransaction, describe, list_transactions
from kaspar.spark.exactly_once.decision_log import DecisionLog
from kaspar.spark.exactly_once.decisions import Decision, QueryState
from kaspar.spark.exactly_once.names import PREFIX, BatchName, TransactionName, is_unnamed_job, prefix_of
from kaspar.spark.exactly_once.ownership import take_over
from kaspar.spark.exactly_once.parties import DecidedButAborted, Parties, Superseded
from kaspar.spark.exactly_once.publishing import forget
from kaspar.spark.exactly_once.settling import clear_away, finish_pending

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class QueryLeftOvers:
    query: str
    state: QueryState
    open_transactions: tuple[DescribedTransaction, ...]

    @property
    def decided(self) -> frozenset[str]:
        """The ids of those that are to be committed."""
        return self.state.pending.transactional_ids if self.state.pending is not None else frozenset()


@dataclass(frozen=True, slots=True)
class Ended:
    committed: int
    aborted: int
    still_open: frozenset[str]
    """Those that a run has opened again meanwhile: it has not noticed yet that it may publish nothing more."""
    loss: str | None = None
    """What is missing, if that was accepted."""


def find_left_overs(client: Client, log: DecisionLog) -> list[QueryLeftOvers]:
    """Every query with an open transaction or a decision that is not complete; also those that are running now."""
    listed = [each.transactional_id for each in list_transactions(client, prefix=PREFIX, states=("Ongoing",))]
    of_query: dict[str, list[DescribedTransaction]] = defaultdict(list)
    for transactional_id, described in describe(client, listed).items():
        if (name := TransactionName.of(transactional_id)) is not None:
            of_query[name.query].append(described)
    states = {query: log.state(query) for query in {*log.queries(), *of_query}}
    return [
        QueryLeftOvers(query, state, tuple(of_query[query]))
        for query, state in sorted(states.items())
        if of_query[query] or state.pending is not None
    ]


def is_known(client: Client, log: DecisionLog, query: str) -> bool:
    """Whether the log or the brokers have heard of the query: one that left nothing may still have to be let go on."""
    return query in log.queries() or bool(list_transactions(client, prefix=prefix_of(query)))


def end_left_overs(parties: Parties, query: str, *, accept_loss: bool = False) -> Ended:
    """Raises DecidedButAborted if what was decided cannot be committed any more, unless that is accepted."""
    after = _last_generation(parties.coordinator.known_transactions(query))
    state = parties.log.look(query)  # after that: whoever has such an id by then, and is in the log, is seen
    decided = len(state.pending.transactions) if state.pending is not None else 0
    left = parties.coordinator.open_transactions(query)
    named = state.pending.transactional_ids if state.pending is not None else frozenset()
    claim = f"kaspar spark transactions {parties.nonce}"
    loss = None
    try:
        if take_over(parties, query, claim, state, after=after) is None:
            raise Superseded(f"query {query} was taken over by another run just now: look again")
    except DecidedButAborted as problem:
        if not accept_loss:
            raise
        loss, decided = str(problem), decided - problem.transactions
        state = parties.log.append(query, parties.log.state(query).completion())
        clear_away(parties, query, state, generations_before=state.generation)
    if accept_loss:
        _accept_other_writes(parties, query)
    still_open = frozenset(left).intersection(parties.coordinator.open_transactions(query))
    return Ended(decided, len(frozenset(left) - named - still_open), still_open, loss)


def _accept_other_writes(parties: Parties, query: str) -> None:
    """Whatever the program writes now for the last batch, that counts as published."""
    state = parties.log.state(query)
    if state.is_complete and (last := state.last) is not None and last.covers is not None:
        parties.log.append(query, [replace(last, covers=None).completion()])


def _last_generation(transactional_ids: Iterable[str]) -> int:
    """A log that was deleted and made anew knows nothing of the generations before. Their transactions may be open, and
    a worker that has not heard of it may open more."""
    names = [TransactionName.of(each) for each in transactional_ids]
    return max((name.generation for name in names if name is not None), default=0)


def finish_decided(parties: Parties) -> dict[BatchName, str | None]:
    """Carry out every decision that is not yet, of any query; what stood in the way of each, if anything did.

    Nobody is taken over by that, and a run that is at it just now finds it done (settling.py). A job without a name is
    forgotten after it.
    """
    return {decision.batch: _finish(parties, decision) for decision in parties.log.pending()}


def finish_for_others(parties: Parties) -> None:
    """What a run does once, beside its own batches: a query that is not started again would leave what it decided to
    whatever limit the brokers set. That this goes wrong is no reason for the run to fail."""
    try:
        for batch, problem in finish_decided(parties).items():
            if problem is not None:
                log.warning(f"{batch} is decided, and could not be carried out in its place: {problem}")
    except (KasparError, OSError) as problem:
        log.warning(f"What other queries have decided could not be looked for: {problem}")


def _finish(parties: Parties, decision: Decision) -> str | None:
    query = decision.batch.query
    try:
        if not (state := parties.log.look(query)).is_pending(decision):
            return None
        if is_unnamed_job(decision.batch):
            _finish_job(parties, decision.batch, state)
        else:
            finish_pending(parties, query)
    except (KasparError, OSError) as problem:
        return str(problem)
    return None


def _finish_job(parties: Parties, job: BatchName, state: QueryState) -> None:
    taken = take_over(parties, job.query, f"after {job.claim} {parties.nonce}", state)
    if taken is not None and taken.is_complete:
        forget(parties, job)
