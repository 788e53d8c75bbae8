"""Changes of the in-sync replicas that a leader has asked the controller for (KIP-497).

At most one is under way per partition. Until its outcome is known, whoever may be in sync counts as in sync for the
high watermark: the committed replicas and those asked for, which together are the maximal in-sync replicas.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import BrokerId, LeaderEpoch


@dataclass(frozen=True, slots=True, eq=False)
class IsrProposal:
    """What a leader asks for, and the state of the partition that this is based on. Compared by identity: the outcome
    of an earlier proposal says nothing about a later one that asks for the same.
    """

    leader_epoch: LeaderEpoch
    partition_epoch: int
    isr: tuple[BrokerId, ...]
    broker_epochs: tuple[int, ...]
    """Of each replica in `isr`, as it fetched; -1 if it has not fetched from this leader yet (KIP-903)."""
    added: BrokerId | None = None
    """None: replicas leave."""


class AfterRefusal(Enum):
    """What a leader does about a proposal that the controller refused, as Kafka's Partition does."""

    REVERT = "revert"
    """It is certain that nothing was changed, nor will be: the last committed state holds."""
    WAIT = "wait"
    """The partition has changed in a way that this leader does not know yet: the image will say how."""
    RETRY = "retry"
    """The outcome is unknown, or the controller is away: ask again."""


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
