"""What queries have left behind: found, shown, and ended by hand.

Queries end what they left themselves, when they run again. One that never does may leave prepared transactions, which
hold up read_committed readers. To end them is to take the query over: what was decided is committed, everything else is
aborted, and a run of it that is still there can publish nothing more.

A job without a name never runs again. What it had decided when its driver died is finished by the next such job, so
that it does not stay published by half. What it had not decided cannot be told from that of a job which still runs: it
is ended by hand.
"""

import logging
from collections import defaultdict
from dataclasses import dataclass, replace

from kaspar.base.errors import KasparError
from kaspar.client.cluster import Client
from kaspar.client.transactions import DescribedTransaction, describe, list_transactions
from kaspar.spark.exactly_once.decision_log import DecisionLog
from kaspar.spark.exactly_once.decisions import QueryState
from kaspar.spark.exactly_once.names import PREFIX, BatchName, TransactionName, is_unnamed_job
from kaspar.spark.exactly_once.ownership import take_over
from kaspar.spark.exactly_once.parties import DecidedButAborted, Parties, Superseded
from kaspar.spark.exactly_once.publishing import forget
from kaspar.spark.exactly_once.settling import clear_away

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


def end_left_overs(parties: Parties, query: str, *, accept_loss: bool = False) -> Ended:
    """Raises DecidedButAborted if what was decided cannot be committed any more, unless that is accepted."""
    state = parties.log.look(query)
    decided = len(state.pending.transactions) if state.pending is not None else 0
    left = len(parties.coordinator.open_transactions(query))
    loss = None
    try:
        if take_over(parties, query, f"kaspar spark transactions {parties.nonce}", state) is None:
            raise Superseded(f"query {query} was taken over by another run just now: look again")
    except DecidedButAborted as problem:
        if not accept_loss:
            raise
        loss = str(problem)
        state = parties.log.append(query, parties.log.state(query).completion())
        clear_away(parties, query, state, generations_before=state.generation)
    if accept_loss:
        _accept_other_writes(parties, query)
    return Ended(decided, max(left - decided, 0), loss)


def _accept_other_writes(parties: Parties, query: str) -> None:
    """Whatever the program writes now for the last batch, that counts as published."""
    state = parties.log.state(query)
    if state.is_complete and (last := state.last) is not None and last.covers is not None:
        parties.log.append(query, [replace(last, covers=None).completion()])


def finish_jobs_beside(parties: Parties, query: str) -> None:
    """Finish what jobs without a name have decided, and forget them. One whose driver is alive after all, and at it
    just now, finds it done."""
    for decision in parties.log.pending_beside(query):
        if is_unnamed_job(decision.batch) and parties.log.look(decision.batch.query).is_pending(decision):
            _finish_job(parties, decision.batch)


def _finish_job(parties: Parties, job: BatchName) -> None:
    """That this goes wrong is no reason for another query to fail."""
    try:
        state = take_over(parties, job.query, f"after {job.claim} {parties.nonce}", parties.log.state(job.query))
        if state is not None and state.is_complete:
            forget(parties, job)
    except (KasparError, OSError) as problem:
        log.warning(f"{job}, whose driver has died, could not be finished: {problem}")
