"""The states of a consumer group and of its members, and the transitions of a member.

docs/groups.md draws both tables. The state of the group is not stored: it follows from epochs and members.
"""

import enum
from typing import Final


class GroupState(enum.Enum):
    """The values are Kafka's names, as ListGroups and ConsumerGroupDescribe return them."""

    EMPTY = "Empty"
    """Has no members; may still have committed offsets."""
    ASSIGNING = "Assigning"
    """Something has changed since the last assignment: the group's epoch is ahead of it."""
    RECONCILING = "Reconciling"
    """Every member has a target; not every member has reached it."""
    STABLE = "Stable"
    """Every member has reached its target."""
    DEAD = "Dead"
    """Deleted, or converted to a classic group."""


class MemberState(enum.IntEnum):
    """The values are those in Kafka's records."""

    STABLE = 0
    """Has its whole target, at the epoch of the target."""
    UNREVOKED_PARTITIONS = 1
    """Has to give up partitions first, and stays at its epoch until it reports that it has."""
    UNRELEASED_PARTITIONS = 2
    """Is at the epoch of the target, and waits for partitions that other members have yet to give up."""
    UNKNOWN = 127
    """A state that a later release has written and that is not known here: the member has to rejoin."""

    @classmethod
    def of(cls, number: int) -> "MemberState":
        try:
            return cls(number)
        except ValueError:
            return cls.UNKNOWN


MEMBER_TRANSITIONS: Final[dict[MemberState, dict[MemberState, str]]] = {
    MemberState.STABLE: {
        MemberState.STABLE: "a new target takes nothing from it, and what it adds is free",
        MemberState.UNREVOKED_PARTITIONS: "a new target, or its own subscription, takes partitions from it",
        MemberState.UNRELEASED_PARTITIONS: "a new target gives it partitions that others still have",
    },
    MemberState.UNREVOKED_PARTITIONS: {
        MemberState.STABLE: "it has given them up, and nothing else is missing",
        MemberState.UNREVOKED_PARTITIONS: "it has given them up, and the target takes more by now",
        MemberState.UNRELEASED_PARTITIONS: "it has given them up, and waits for others to do the same",
    },
    MemberState.UNRELEASED_PARTITIONS: {
        MemberState.STABLE: "all that it waited for is free",
        MemberState.UNREVOKED_PARTITIONS: "a new target takes partitions from it",
        MemberState.UNRELEASED_PARTITIONS: "some of what it waited for is free, or the target has changed",
    },
    MemberState.UNKNOWN: {
        MemberState.STABLE: "it owns nothing, and its target is free",
        MemberState.UNREVOKED_PARTITIONS: "it owns nothing, and the log has partitions that it no longer gets",
        MemberState.UNRELEASED_PARTITIONS: "it owns nothing, and waits for others",
    },
}
