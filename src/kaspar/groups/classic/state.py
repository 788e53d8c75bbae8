"""The states of a classic group, and from which to which it may go. docs/groups.md draws this table."""

import enum
from typing import Final


class ClassicState(enum.Enum):
    """The values are Kafka's words, as ListGroups and DescribeGroups show them."""

    EMPTY = "Empty"
    """Nobody is in it; it may still have committed offsets."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """Waits until all members have joined again, or their time is up."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """Everybody knows the generation; the leader has yet to say who gets what."""
    STABLE = "Stable"
    """The assignment is in the log, and members have it or may fetch it."""
    DEAD = "Dead"
    """Deleted, converted, or now another coordinator's."""


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
