"""Changes of the in-sync replicas that a leader has requested from the controller (KIP-497).

At most one is pending per partition. Until its outcome is known, every replica that may be in sync counts as in sync
for the high watermark: the committed replicas and the requested one, together called the maximal in-sync replicas.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import BrokerId, LeaderEpoch


@dataclass(frozen=True, slots=True, eq=False)
class IsrProposal:
    """The change that a leader requests, and the state of the partition that it is based on. Compared by identity: the
    outcome of an earlier proposal says nothing about a later one with the same contents.
    """

    leader_epoch: LeaderEpoch
    partition_epoch: int
    isr: tuple[BrokerId, ...]
    broker_epochs: tuple[int, ...]
    """The broker epoch of each replica in `isr`, from its fetches; -1 if it has not fetched here yet (KIP-903)."""
    added: BrokerId | None = None
    """None if replicas are removed."""


class AfterRefusal(Enum):
    """How a leader reacts to a proposal that the controller refused, like Kafka's Partition."""

    REVERT = "revert"
    """Nothing was changed, nor will be: the last committed state is valid."""
    WAIT = "wait"
    """The partition has changed in a way that this leader does not know yet: wait for the image."""
    RETRY = "retry"
    """The outcome is unknown, or the controller is unavailable: send the proposal again."""


_REVERTED: Final = frozenset({ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED})
_SUPERSEDED: Final = frozenset(
    {
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


def after_refusal(code: ErrorCode) -> AfterRefusal:
    if code in _REVERTED:
        return AfterRefusal.REVERT
    return AfterRefusal.WAIT if code in _SUPERSEDED else AfterRefusal.RETRY
