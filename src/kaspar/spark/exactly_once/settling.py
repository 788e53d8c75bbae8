"""What was decided is carried out, and what never will be is aborted. Both may be done again by anyone, at any time.

Anyone may carry out a decision, also one of a query that runs at this moment. That it is valid is settled by its place
in the log for good. Each commit names the pair that ends this one transaction: every attempt raises the epoch when it
begins, so no later transaction of the id answers to it. And a completion that comes late says what is true.
"""

import shlex
from collections.abc import Mapping, Sequence

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
        raise DecidedButAborted(_loss(decision, lost), len(lost))
    return parties.log.append(query, state.completion())


def commit(parties: Parties, decision: Decision) -> dict[DecidedTransaction, Fate]:
    """Those of its transactions that are not there to be committed any more, unless the decision is complete by now."""
    endings = [Ending(each.transactional_id, each.producer, True) for each in decision.transactions]
    codes = parties.coordinator.end(endings)
    refused = [each for each, code in zip(decision.transactions, codes, strict=True) if code != ErrorCode.NONE]
    if not refused:
        return {}
    for each, code in zip(decision.transactions, codes, strict=True):
        if code != ErrorCode.NONE and code not in ENDED_OTHERWISE:
            raise Refused(
                code,
                f"{decision.batch} is decided, and committing {each.transactional_id} is refused: {code.name}. The "
                "next run commits it.",
            )
    described = parties.coordinator.describe([each.transactional_id for each in refused])
    fates = {each: fate_of(described.get(each.transactional_id)) for each in refused}
    return {each: fate for each, fate in fates.items() if fate is not Fate.COMMITTED}


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


def _loss(decision: Decision, lost: Mapping[DecidedTransaction, Fate]) -> str:
    aborted = [each for each, fate in lost.items() if fate is Fate.ABORTED]
    unknown = [each for each, fate in lost.items() if fate is Fate.UNKNOWN]
    what = []
    if aborted:
        what.append(
            f"{len(aborted)} of its {len(decision.transactions)} transactions were aborted before they could be "
            f"committed, by a timeout, by their age or by hand: what {_tasks_and_topics(aborted)} is missing"
        )
    if unknown:
        what.append(
            f"what became of {len(unknown)} of its {len(decision.transactions)} transactions cannot be told any more, "
            "because their ids were idle for transactional.id.expiration.ms and forgotten, or were used by others: "
            f"what {_tasks_and_topics(unknown)} may be published or missing"
        )
    return (
        f"{decision.batch} was decided, and {'; '.join(what)}. The query does not go on. When these rows were looked "
        "after, `kaspar spark transactions --bootstrap-server HOST:PORT --query "
        f"{shlex.quote(decision.batch.query)} --end --accept-loss` lets it go on as they are."
    )


def _tasks_and_topics(lost: Sequence[DecidedTransaction]) -> str:
    tasks = ", ".join(str(each.task) for each in sorted(lost, key=lambda each: each.task))
    topics = sorted({topic for each in lost for topic in each.topics})
    return f"tasks {tasks} wrote to {', '.join(topics)}"
