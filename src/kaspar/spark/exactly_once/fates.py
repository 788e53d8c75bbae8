"""What became of a transaction that was decided to be committed, when its end is answered with anything but success.

PRODUCER_FENCED or INVALID_TXN_STATE alone say nothing: the commit may have been carried out and its answer lost, or the
transaction may have been aborted. From the decision until its completion is in the log nobody who keeps to the protocol
uses the transactional id for anything else, so the state that it is in tells.
"""

from enum import Enum

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.client.transactions import NO_TIMEOUT_MS, DescribedTransaction

COMMITTING = frozenset({"PrepareCommit", "CompleteCommit"})
ENDED_OTHERWISE = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
    }
)
"""The answers to EndTxn that leave open what happened."""


class Fate(Enum):
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "not to be told any more"


def fate_of(described: DescribedTransaction | None) -> Fate:
    """Of a transaction whose commit was refused with one of the answers above."""
    if described is None:
        return Fate.UNKNOWN  # forgotten, being idle for long
    if described.state in COMMITTING:
        return Fate.COMMITTED
    if described.state in ("PrepareAbort", "CompleteAbort", "PrepareEpochFence"):
        return Fate.ABORTED
    return Fate.UNKNOWN  # Empty or Ongoing under another pair: the decision is complete by now, or someone used the id


def is_still_open(described: DescribedTransaction | None, producer: ProducerIdAndEpoch) -> bool:
    """Whether a transaction is as its task has left it. `producer` is the pair that ends it: that of its records or, of
    a prepared one, the next."""
    if described is None or described.state != "Ongoing":
        return False
    return described.producer == producer or (
        described.timeout_ms == NO_TIMEOUT_MS and _follows(described.producer, producer)
    )


def _follows(before: ProducerIdAndEpoch, after: ProducerIdAndEpoch) -> bool:
    """A producer whose epochs are exhausted goes on under a new id."""
    if before.producer_id == after.producer_id:
        return after.producer_epoch == before.producer_epoch + 1
    return after.producer_epoch == 0
