"""Leftovers of queries: finds open transactions and incomplete decisions, and ends them by hand.

A query ends its own leftovers when it runs again. One that never does may leave prepared transactions, which block
read_committed readers. Ending them takes over the query: decided transactions are committed, all others are aborted,
and a run of the query that still exists can publish nothing more.

A query that never runs again, or an unnamed job, may also leave an incomplete decision. Any process may carry out a
decision, so the next run of any query does. The undecided transactions of an unnamed job cannot be distinguished from
those of a job that is still running, so they are ended by hand.
"""

import logging
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from kaspar.base.errors import KasparError
from kaspar.client.cluster import Client
from kaspar.client.transactions import DescribedTransaction, describe, list_transactions
from kaspar.exactly_once.decision_log import DecisionLog
from kaspar.exactly_once.decisions import BatchDecision, QueryState
from kaspar.exactly_once.errors import DecidedButAborted, Superseded
from kaspar.exactly_once.names import PREFIX, BatchName, TransactionName, is_unnamed_job, prefix_of
from kaspar.exactly_once.ownership import take_over
from kaspar.exactly_once.participants import Participants
from kaspar.exactly_once.publishing import forget_job
from kaspar.exactly_once.settling import abort_leftovers, finish_pending

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class QueryLeftovers:
    query: str
    state: QueryState
    open_transactions: tuple[DescribedTransaction, ...]

    @property
    def decided(self) -> frozenset[str]:
        """The ids of the transactions that are to be committed."""
        return self.state.pending.transactional_ids if self.state.pending is not None else frozenset()


@dataclass(frozen=True, slots=True)
class Ended:
    committed: int
    aborted: int
    still_open: frozenset[str]
    """Transactions reopened meanwhile, by a run that has not yet noticed that it may publish nothing more."""
    loss: str | None = None
    """The records that are missing, if this loss was accepted."""


def find_leftovers(client: Client, log: DecisionLog) -> list[QueryLeftovers]:
    """Every query with an open transaction or an incomplete decision, including queries that are running now."""
    listed = [each.transactional_id for each in list_transactions(client, prefix=PREFIX, states=("Ongoing",))]
    of_query: dict[str, list[DescribedTransaction]] = defaultdict(list)
    for transactional_id, described in describe(client, listed).items():
        if (name := TransactionName.of(transactional_id)) is not None:
            of_query[name.query].append(described)
    states = {query: log.state(query) for query in {*log.queries(), *of_query}}
    return [
        QueryLeftovers(query, state, tuple(of_query[query]))
        for query, state in sorted(states.items())
        if of_query[query] or state.pending is not None
    ]


def is_known(client: Client, log: DecisionLog, query: str) -> bool:
    """Whether the log or the brokers know the query. One without leftovers may still have to be unblocked."""
    return query in log.queries() or bool(list_transactions(client, prefix=prefix_of(query)))


def end_leftovers(participants: Participants, query: str, *, accept_loss: bool = False) -> Ended:
    """Take over the query, commit what is decided and abort everything else. Raises DecidedButAborted if a decision can
    no longer be carried out, unless that loss is accepted."""
    after = _last_generation(participants.coordinator.known_transactions(query))
    # Read after the list, so that a listed id whose run has claimed the query by now is in this state.
    state = participants.log.read_to_end(query)
    decided = len(state.pending.transactions) if state.pending is not None else 0
    left = participants.coordinator.open_transactions(query)
    named = state.pending.transactional_ids if state.pending is not None else frozenset()
    claim = f"kaspar spark transactions {participants.nonce}"
    loss = None
    try:
        if take_over(participants, query, claim, state, after=after) is None:
            raise Superseded(f"query {query} was just taken over by another run: check again")
    except DecidedButAborted as problem:
        if not accept_loss:
            raise
        loss, decided = str(problem), decided - problem.transactions
        state = participants.log.append(query, participants.log.state(query).completion())
        abort_leftovers(participants, query, state, generations_before=state.generation)
    if accept_loss:
        _accept_other_writes(participants, query)
    still_open = frozenset(left).intersection(participants.coordinator.open_transactions(query))
    return Ended(decided, len(frozenset(left) - named - still_open), still_open, loss)


def _accept_other_writes(participants: Participants, query: str) -> None:
    """Accept any writes of the program for the last batch as published."""
    state = participants.log.state(query)
    if state.is_complete and (last := state.last) is not None and last.covers is not None:
        participants.log.append(query, [replace(last, covers=None).completion()])


def _last_generation(transactional_ids: Iterable[str]) -> int:
    """The largest generation in the ids. A log that was deleted and recreated does not contain it, but its transactions
    may be open, and a worker that has not noticed may open more."""
    names = [TransactionName.of(each) for each in transactional_ids]
    return max((name.generation for name in names if name is not None), default=0)


def finish_decided(participants: Participants) -> dict[BatchName, str | None]:
    """Carry out every pending decision, of any query. Returns for each batch the problem that prevented it, or None.

    This takes over no query with a name, and a run that is committing the same decision finds it complete
    (settling.py). An unnamed job is then forgotten.
    """
    return {decision.batch: _finish(participants, decision) for decision in participants.log.pending()}


def finish_for_others(participants: Participants) -> None:
    """Carry out the pending decisions of all queries, once per run: those of a query that is not restarted would
    otherwise wait until the brokers abort their transactions. A failure here does not fail the run."""
    try:
        for batch, problem in finish_decided(participants).items():
            if problem is not None:
                log.warning(f"{batch} is decided, but could not be committed on behalf of its run: {problem}")
    except (KasparError, OSError) as problem:
        log.warning(f"Pending decisions of other queries could not be listed: {problem}")


def _finish(participants: Participants, decision: BatchDecision) -> str | None:
    query = decision.batch.query
    try:
        if not (state := participants.log.read_to_end(query)).is_pending(decision):
            return None
        if is_unnamed_job(decision.batch):
            _finish_job(participants, decision.batch, state)
        else:
            finish_pending(participants, query)
    except (KasparError, OSError) as problem:
        return str(problem)
    return None


def _finish_job(participants: Participants, job: BatchName, state: QueryState) -> None:
    taken = take_over(participants, job.query, f"after {job.claim} {participants.nonce}", state)
    if taken is not None and taken.is_complete:
        forget_job(participants, job)
