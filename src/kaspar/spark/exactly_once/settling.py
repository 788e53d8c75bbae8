"""What was decided is carried out, and what never will be is aborted. Both may be done again by anyone, at any time."""

import shlex

from kaspar.base.errors import ErrorCode, Refused
from kaspar.client.transactions import Ending
from kaspar.spark.exactly_once.decisions import DecidedTransaction, Decision, QueryState
from kaspar.spark.exactly_once.fates import ENDED_OTHERWISE, Fate, fate_of
from kaspar.spark.exactly_once.names import TransactionName
from kaspar.spark.exactly_once.parties import DecidedButAborted, Parties


def finish_pending(parties: Parties, query: str) -> QueryState:
    """Commit every transaction of the last decision, if that is not complete, and say so in the log."""
    state = parties.log.state(query)
    if (decision := state.pending) is None:
        return state
    lost = commit(parties, decision)
    if lost and not (state := parties.log.look(query)).is_pending(decision):
        return state  # someone else was faster, and its ids may be in use again
    if lost:
        raise DecidedButAborted(_loss(decision, lost))
    return parties.log.append(query, state.completion())


def commit(parties: Parties, decision: Decision) -> list[DecidedTransaction]:
    """Those of its transactions that are not there to be committed any more, unless the decision is complete by now."""
    endings = [Ending(each.transactional_id, each.producer, True) for each in decision.transactions]
    codes = parties.coordinator.end(endings)
    refused = [each for each, code in zip(decision.transactions, codes, strict=True) if code != ErrorCode.NONE]
    if not refused:
        return []
    for each, code in zip(decision.transactions, codes, strict=True):
        if code != ErrorCode.NONE and code not in ENDED_OTHERWISE:
            raise Refused(
                code,
                f"{decision.batch} is decided, and committing {each.transactional_id} is refused: {code.name}. The "
                "next run commits it.",
            )
    described = parties.coordinator.describe([each.transactional_id for each in refused])
    return [each for each in refused if fate_of(described.get(each.transactional_id)) is not Fate.COMMITTED]


def clear_away(parties: Parties, query: str, state: QueryState, *, generations_before: int) -> list[str]:
    """Abort the query's open transactions of earlier generations, except those that a decision names; their ids."""
    named = state.pending.transactional_ids if state.pending is not None else frozenset()
    left = [
        transactional_id
        for transactional_id in parties.coordinator.open_transactions(query)
        if transactional_id not in named
        and (name := TransactionName.of(transactional_id)) is not None
        and name.generation < generations_before
    ]
    if left:
        parties.coordinator.fence(left)
    return left


def _loss(decision: Decision, lost: list[DecidedTransaction]) -> str:
    topics = sorted({topic for each in lost for topic in each.topics})
    tasks = ", ".join(str(each.task) for each in sorted(lost, key=lambda each: each.task))
    return (
        f"{decision.batch} was decided, and {len(lost)} of its {len(decision.transactions)} transactions were aborted "
        f"before they could be committed, by transaction.timeout.ms or by hand: what tasks {tasks} wrote to "
        f"{', '.join(topics)} is missing. The query does not go on. When these rows were looked after, `kaspar spark "
        f"transactions --bootstrap-server HOST:PORT --query {shlex.quote(decision.batch.query)} --end --accept-loss` "
        "lets it go on without them."
    )
