"""The outcome of a decided transaction whose EndTxn failed.

PRODUCER_FENCED or INVALID_TXN_STATE alone are inconclusive: the commit may have been carried out and its response lost,
or the transaction may have been aborted. From the decision until its completion is in the log no participant uses the
transactional id for anything else, so the state of the transaction (DescribeTransactions) shows which.
"""

from enum import Enum

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.client.transactions import NO_TIMEOUT_MS, DescribedTransaction

COMMITTING = frozenset({"PrepareCommit", "CompleteCommit"})
EPOCHS_TO_PREPARE = (1, 2)
INCONCLUSIVE = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
    }
)
"""The errors of EndTxn after which the outcome is unknown."""


class Outcome(Enum):
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


def outcome_of(described: DescribedTransaction | None) -> Outcome:
    """The outcome of a transaction whose commit failed with one of the INCONCLUSIVE errors."""
    if described is None:
        return Outcome.UNKNOWN  # expired: transactional.id.expiration.ms
    if described.state in COMMITTING:
        return Outcome.COMMITTED
    if described.state in ("PrepareAbort", "CompleteAbort", "PrepareEpochFence"):
        return Outcome.ABORTED
    # Empty or Ongoing under another producer: the decision is complete by now, or another client used the id.
    return Outcome.UNKNOWN


def is_still_open(described: DescribedTransaction | None, producer: ProducerIdAndEpoch) -> bool:
    """Whether a transaction has not changed since its task finished. `producer` is the id and epoch to end it with:
    those of its records or, for a prepared transaction, the ones that preparing it returned."""
    if described is None or described.state != "Ongoing":
        return False
    return described.producer == producer or (
        described.timeout_ms == NO_TIMEOUT_MS and _follows(described.producer, producer)
    )


def _follows(before: ProducerIdAndEpoch, after: ProducerIdAndEpoch) -> bool:
    """Whether a producer that wrote as `before` became `after` by preparing. That raises the epoch by one (KIP-939), or
    by two if the broker uses one for the fence of the partitions. A producer whose epochs are exhausted gets a new id.
    """
    if before.producer_id == after.producer_id:
        return after.producer_epoch - before.producer_epoch in EPOCHS_TO_PREPARE
    return after.producer_epoch == 0
