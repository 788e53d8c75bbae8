"""Whether a batch may be decided: its transactions must be open, with enough of their timeouts left.

A prepared transaction has no timeout. Any other is aborted by its coordinator when its timeout expires, counted from
its first record, whether a decision names it or not. So a batch is decided only while a third of every timeout is left:
for the decision itself, for its commits, and for a driver that dies between them and has to be restarted.

The age of a transaction comes from its coordinator (ListTransactions with a duration, KIP-994), which uses the same
clock for the timeout. The clocks of the driver and the tasks are not used: they may differ from it by any amount.
"""

from collections.abc import Collection, Mapping, Sequence

from kaspar.client.transactions import NO_TIMEOUT_MS, DescribedTransaction
from kaspar.exactly_once.decisions import DecidedTransaction, Standing
from kaspar.exactly_once.errors import NotPublished
from kaspar.exactly_once.names import BatchName
from kaspar.exactly_once.outcomes import is_still_open
from kaspar.exactly_once.ownership import superseded
from kaspar.exactly_once.participants import Participants

_REMEDIES = (
    "Nothing of the batch is published. Its offsets are in the checkpoint, so a smaller maxOffsetsPerTrigger does not "
    "make it smaller. Raise kafka.transaction.timeout.ms, and if needed the brokers' transaction.max.timeout.ms; use "
    "more cores, so that no task waits while others have their transactions open; or use a Kaspar broker, whose "
    "prepared transactions have no timeout"
)


def check_open(participants: Participants, batch: BatchName, transactions: Sequence[DecidedTransaction]) -> None:
    """Raises NotPublished or Superseded if the batch must not be decided."""
    ids = [each.transactional_id for each in transactions]
    described = participants.coordinator.describe(ids)
    timeout_ms = shortest_timeout_ms(described)
    late: Collection[str] = ()
    if timeout_ms is not None:
        late = participants.coordinator.open_transactions(batch.query, older_than_ms=latest_age_ms(timeout_ms))
        # Described after the list: a transaction that was not listed, and is open now, has a third of its timeout left.
        described = participants.coordinator.describe(ids)
    if not_open := tasks_not_open(transactions, described):
        state = participants.log.read_to_end(batch.query)
        if state.standing(batch.claim) is not Standing.OWNER:
            raise superseded(batch, state)
        reason = "by hand" if timeout_ms is None else f"by their timeout of {timeout_ms} ms, or by hand"
        raise NotPublished(
            f"the transactions of tasks {_listed(not_open)} of {batch} were aborted before it was decided, {reason}. "
            f"{_REMEDIES}"
        )
    if tasks := [each.task for each in transactions if each.transactional_id in late]:
        raise NotPublished(
            f"{batch} is not decided: the transactions of its tasks {_listed(tasks)} have been open for two thirds of "
            f"their timeout of {timeout_ms} ms, and would be lost if the driver died now. {_REMEDIES}"
        )


def latest_age_ms(timeout_ms: int) -> int:
    """The largest age at which a transaction may be decided."""
    return timeout_ms - timeout_ms // 3


def shortest_timeout_ms(described: Mapping[str, DescribedTransaction]) -> int | None:
    """The shortest timeout of the transactions; None if none of them has one."""
    timeouts = [each.timeout_ms for each in described.values() if each.timeout_ms != NO_TIMEOUT_MS]
    return min(timeouts, default=None)


def tasks_not_open(
    transactions: Sequence[DecidedTransaction], described: Mapping[str, DescribedTransaction]
) -> list[int]:
    """The tasks whose transactions have changed since the task finished."""
    return [
        each.task for each in transactions if not is_still_open(described.get(each.transactional_id), each.producer)
    ]


def _listed(tasks: Sequence[int]) -> str:
    return ", ".join(map(str, sorted(tasks)))
