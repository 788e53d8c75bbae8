"""Carries out decisions, and aborts transactions that can never be decided. Any process may repeat both, at any time.

A process may carry out any decision, even of a query that is running: its position in the log has made it valid for
good. Each commit names the producer id and epoch that end this one transaction. Every attempt bumps the epoch when it
begins, so the commit cannot end a later transaction of the same id. A completion that is appended late is still true.
"""

import shlex
from collections.abc import Mapping, Sequence

from kaspar.base.errors import ErrorCode, Refused
from kaspar.client.transactions import Ending
from kaspar.exactly_once.decisions import BatchDecision, DecidedTransaction, QueryState
from kaspar.exactly_once.errors import DecidedButAborted
from kaspar.exactly_once.names import TransactionName
from kaspar.exactly_once.outcomes import INCONCLUSIVE, Outcome, outcome_of
from kaspar.exactly_once.participants import Participants


def finish_pending(participants: Participants, query: str) -> QueryState:
    """Commit every transaction of the last decision, unless it is complete, and record the completion."""
    state = participants.log.state(query)
    if (decision := state.pending) is None:
        return state
    lost = commit(participants, decision)
    if lost and not (state := participants.log.read_to_end(query)).is_pending(decision):
        return state  # another process was faster, and the ids may be in use again
    if lost:
        raise DecidedButAborted(_loss_message(decision, lost), len(lost))
    return participants.log.append(query, state.completion())


def commit(participants: Participants, decision: BatchDecision) -> dict[DecidedTransaction, Outcome]:
    """Commit the transactions. Returns those that failed, which is no loss if the decision is complete by now."""
    endings = [Ending(each.transactional_id, each.producer, True) for each in decision.transactions]
    codes = participants.coordinator.end(endings)
    refused = [each for each, code in zip(decision.transactions, codes, strict=True) if code != ErrorCode.NONE]
    if not refused:
        return {}
    for each, code in zip(decision.transactions, codes, strict=True):
        if code != ErrorCode.NONE and code not in INCONCLUSIVE:
            raise Refused(
                code,
                f"{decision.batch} is decided, but committing {each.transactional_id} failed with {code.name}. The "
                "next run commits it.",
            )
    described = participants.coordinator.describe([each.transactional_id for each in refused])
    outcomes = {each: outcome_of(described.get(each.transactional_id)) for each in refused}
    return {each: outcome for each, outcome in outcomes.items() if outcome is not Outcome.COMMITTED}


def abort_leftovers(participants: Participants, query: str, state: QueryState, *, generations_before: int) -> list[str]:
    """Abort the query's open transactions of earlier generations that no pending decision names. Returns their ids."""
    named = state.pending.transactional_ids if state.pending is not None else frozenset()
    left = [
        transactional_id
        for transactional_id in participants.coordinator.open_transactions(query)
        if transactional_id not in named
        and (name := TransactionName.of(transactional_id)) is not None
        and name.generation < generations_before
    ]
    if left:
        participants.coordinator.fence(left)
    return left


def _loss_message(decision: BatchDecision, lost: Mapping[DecidedTransaction, Outcome]) -> str:
    aborted = [each for each, outcome in lost.items() if outcome is Outcome.ABORTED]
    unknown = [each for each, outcome in lost.items() if outcome is Outcome.UNKNOWN]
    what = []
    if aborted:
        what.append(
            f"{len(aborted)} of its {len(decision.transactions)} transactions were aborted before they could be "
            f"committed, by a timeout, by their age or by hand: what {_tasks_and_topics(aborted)} is missing"
        )
    if unknown:
        what.append(
            f"the outcome of {len(unknown)} of its {len(decision.transactions)} transactions is unknown, because their "
            "ids expired (transactional.id.expiration.ms) or were used by others: what "
            f"{_tasks_and_topics(unknown)} may be published or missing"
        )
    return (
        f"{decision.batch} was decided, but {'; '.join(what)}. The query stops. After you have taken care of these "
        f"rows, `kaspar spark transactions --bootstrap-server HOST:PORT --query {shlex.quote(decision.batch.query)} "
        "--end --accept-loss` lets it continue without them."
    )


def _tasks_and_topics(lost: Sequence[DecidedTransaction]) -> str:
    tasks = ", ".join(str(each.task) for each in sorted(lost, key=lambda each: each.task))
    topics = sorted({topic for each in lost for topic in each.topics})
    return f"tasks {tasks} wrote to {', '.join(topics)}"
