"""A member of a consumer group, as the log has it: what it asked for, what it has, and how far it is.

Immutable: a change makes another one, which each heartbeat of a rebalance does twice: so a named tuple. Partitions are
held with the epoch at which the member got them, so that a commit that was sent before somebody else had them in
between can be told from one that is only late.
"""

import uuid
from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from kaspar.base.named_tuples import new_tuple
from kaspar.groups.consumer.states import MemberState
from kaspar.groups.records import ClassicMemberMetadata

Partitions: TypeAlias = Mapping[uuid.UUID, frozenset[int]]
"""Partitions of topics, without empty topics."""
OwnedPartitions: TypeAlias = Mapping[uuid.UUID, Mapping[int, int]]
"""Partitions of topics, each with the epoch at which its owner got it, without empty topics."""
NO_PARTITIONS: Final[Partitions] = {}
NOTHING_OWNED: Final[OwnedPartitions] = {}

JOINS: Final = 0
"""The epoch of a member that joins, or joins again."""
LEAVES: Final = -1
LEAVES_FOR_A_WHILE: Final = -2
"""The epoch of a static member that is away and is expected back: it keeps what it has until its session ends."""


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
        """Empty if it has none: Kafka tells a null from an empty one, and means the same."""
        return self.subscribed_topic_regex or ""

    def moved(
        self, epoch: int, previous: int, state: MemberState, assigned: OwnedPartitions, pending: OwnedPartitions
    ) -> "Member":
        """Its current assignment is another; what it asked for is the same. `_replace` takes three times as long."""
        return new_tuple(Member, (self.member_id, epoch, previous, state, *self[_FIRST:_BEHIND], assigned, pending))

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch

    def epoch_of(self, topic_id: uuid.UUID, partition: int) -> int | None:
        """At which epoch it got a partition that it has, or has to give up. None: it has not."""
        epoch = self.assigned.get(topic_id, {}).get(partition)
        return self.pending_revocation.get(topic_id, {}).get(partition) if epoch is None else epoch


# Where the fields of what it asked for begin and end.
_FIRST: Final[int] = Member._fields.index("instance_id")
_BEHIND: Final[int] = Member._fields.index("assigned")
