"""A member of a consumer group as stored in the log: its subscription and settings, its assignment, and its epoch.

Immutable. It is a named tuple, because each heartbeat of a rebalance creates two. Partitions are kept with the epoch at
which the member got them. This distinguishes a commit from before another member owned the partition in between from
one that is only late.
"""

import uuid
from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from kaspar.base.named_tuples import new_tuple
from kaspar.groups.consumer.states import MemberState
from kaspar.groups.records import ClassicMemberMetadata

Partitions: TypeAlias = Mapping[uuid.UUID, frozenset[int]]
"""Partitions by topic; no topic is empty."""
OwnedPartitions: TypeAlias = Mapping[uuid.UUID, Mapping[int, int]]
"""Partitions by topic, each with the epoch at which its owner got it; no topic is empty."""
NO_PARTITIONS: Final[Partitions] = {}
NOTHING_OWNED: Final[OwnedPartitions] = {}

JOINS: Final = 0
"""The epoch that a member sends when it joins or rejoins."""
LEAVES: Final = -1
LEAVES_FOR_A_WHILE: Final = -2
"""The epoch of a static member that is temporarily away: it keeps its partitions until its session ends."""


class Member(NamedTuple):
    member_id: str
    member_epoch: int = JOINS
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: frozenset[str] = frozenset()
    subscribed_topic_regex: str | None = ""
    server_assignor: str | None = None
    classic: ClassicMemberMetadata | None = None
    assigned: OwnedPartitions = NOTHING_OWNED
    pending_revocation: OwnedPartitions = NOTHING_OWNED

    @property
    def uses_classic_protocol(self) -> bool:
        return self.classic is not None

    @property
    def pattern(self) -> str:
        """The subscribed pattern, empty if there is none. In Kafka null and empty are distinct, but mean the same."""
        return self.subscribed_topic_regex or ""

    def moved(
        self, epoch: int, previous: int, state: MemberState, assigned: OwnedPartitions, pending: OwnedPartitions
    ) -> "Member":
        """A copy with another current assignment; all else is the same. `_replace` takes three times as long."""
        return new_tuple(Member, (self.member_id, epoch, previous, state, *self[_FIRST:_BEHIND], assigned, pending))

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch

    def epoch_of(self, topic_id: uuid.UUID, partition: int) -> int | None:
        """The epoch at which the member got this partition. None if it neither has it nor has to give it up."""
        epoch = self.assigned.get(topic_id, {}).get(partition)
        return self.pending_revocation.get(topic_id, {}).get(partition) if epoch is None else epoch


# The range of fields that `moved` copies unchanged.
_FIRST: Final[int] = Member._fields.index("instance_id")
_BEHIND: Final[int] = Member._fields.index("assigned")
