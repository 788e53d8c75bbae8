"""Whether a batch may be decided: all of its transactions are open, and those with a timeout stay so for long enough.

A prepared transaction has no timeout. One that was not prepared is aborted by its coordinator when its timeout is over,
counted from its first record, whether it was decided to be committed or not. So a batch is decided only while a third
of every timeout is left: for the decision itself, for its commits, and for a driver that dies between them and has to
be started again.

How old a transaction is, is asked of its coordinator (ListTransactions with a duration, KIP-994), which answers by the
clock that also ends it. The clocks of the driver and of tasks may differ from that one by any amount, and are not used.
"""

from collections.abc import Collection, Mapping, Sequence

from kaspar.client.transactions import NO_TIMEOUT_MS, DescribedTransaction
from kaspar.spark.exactly_once.decisions import DecidedTransaction, Standing
from kaspar.spark.exactly_once.fates import is_still_open
from kaspar.spark.exactly_once.names import BatchName
from kaspar.spark.exactly_once.ownership import superseded
from kaspar.spark.exactly_once.parties import NotPublished, Parties

_WHAT_HELPS = (
    "Nothing of the batch is published. Its offsets are in the checkpoint, so a smaller maxOffsetsPerTrigger does not "
    "make it smaller. What helps is a larger kafka.transaction.timeout.ms, for which the brokers' "
    "transaction.max.timeout.ms may have to be raised; more cores, so that no task waits while others have their "
    "transactions open; or a Kaspar broker, whose prepared transactions have no timeout"
)


def check_open(parties: Parties, batch: BatchName, transactions: Sequence[DecidedTransaction]) -> None:
    """Raises NotPublished or Superseded if the batch must not be decided."""
    ids = [each.transactional_id for each in transactions]
    described = parties.coordinator.describe(ids)
    timeout_ms = shortest_timeout_ms(described)
    late: Collection[str] = ()
    if timeout_ms is not None:
        late = parties.coordinator.open_transactions(batch.query, older_than_ms=latest_age_ms(timeout_ms))
        described = parties.coordinator.describe(ids)  # what was not late, and is open after that, has its time left
    if gone := tasks_gone(transactions, described):
        state = parties.log.look(batch.query)
        if state.standing(batch.claim) is not Standing.OWNER:
            raise superseded(batch, state)
        reason = "by hand" if timeout_ms is None else f"by their timeout of {timeout_ms} ms, or by hand"
        raise NotPublished(
            f"the transactions of tasks {_listed(gone)} of {batch} were aborted before it was decided, {reason}. "
            f"{_WHAT_HELPS}"
        )
    if tasks := [each.task for each in transactions if each.transactional_id in late]:
        raise NotPublished(
            f"{batch} is not decided: the transactions of its tasks {_listed(tasks)} have been open for two thirds of "
            f"their timeout of {timeout_ms} ms, and would be aborted if the driver died now. {_WHAT_HELPS}"
        )


def latest_age_ms(timeout_ms: int) -> int:
    """Up to which age a transaction may be decided about."""
    return timeout_ms - timeout_ms // 3


def shortest_timeout_ms(described: Mapping[str, DescribedTransaction]) -> int | None:
    """None: not one of them has a timeout."""
    timeouts = [each.timeout_ms for each in described.values() if each.timeout_ms != NO_TIMEOUT_MS]
    return min(timeouts, default=None)


def tasks_gone(transactions: Sequence[DecidedTransaction], described: Mapping[str, DescribedTransaction]) -> list[int]:
    """The tasks whose transactions are not as they left them."""
    return [
        each.task for each in transactions if not is_still_open(described.get(each.transactional_id), each.producer)
    ]


def _listed(tasks: Sequence[int]) -> str:
    return ", ".join(map(str, sorted(tasks)))
