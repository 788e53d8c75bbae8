"""The states of a classic group and the transitions between them. docs/groups.md draws this table."""

import enum
from typing import Final


class ClassicState(enum.Enum):
    """The values are Kafka's names, as ListGroups and DescribeGroups return them."""

    EMPTY = "Empty"
    """Has no members; may still have committed offsets."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """Waits until all members have joined again, or their time is up."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """All members know the generation; the leader has not sent the assignments yet."""
    STABLE = "Stable"
    """The assignment is in the log, and members have it or can fetch it."""
    DEAD = "Dead"
    """Deleted, converted, or moved to another coordinator."""


TRANSITIONS: Final[dict[ClassicState, frozenset[ClassicState]]] = {
    ClassicState.EMPTY: frozenset({ClassicState.PREPARING_REBALANCE, ClassicState.DEAD}),
    ClassicState.PREPARING_REBALANCE: frozenset(
        {ClassicState.COMPLETING_REBALANCE, ClassicState.EMPTY, ClassicState.DEAD}
    ),
    ClassicState.COMPLETING_REBALANCE: frozenset(
        {ClassicState.STABLE, ClassicState.PREPARING_REBALANCE, ClassicState.DEAD}
    ),
    ClassicState.STABLE: frozenset({ClassicState.PREPARING_REBALANCE, ClassicState.DEAD}),
    ClassicState.DEAD: frozenset(),
}
