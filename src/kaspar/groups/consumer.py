"""A group of the consumer protocol (KIP-848): its state, and what it allows.

The log gives its state (`ConsumerState`), and `replay` alone changes that. Beside it there are deadlines and the memory
of when the topics were looked at last: neither outlives a restart, and neither has to. The rules of the protocol are in
`consumer_requests`, those of members that use the classic protocol in `consumer_classic`, those of conversion in
`migration`; this is what they work on.
"""

import uuid
from collections.abc import Collection
from typing import TYPE_CHECKING

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ZERO_UUID
from kaspar.coordination import StoredRecord
from kaspar.groups.assignors import ASSIGNORS
from kaspar.groups.consumer_member import NO_PARTITIONS, Member, Partitions
from kaspar.groups.consumer_state import ConsumerState
from kaspar.groups.consumer_timers import MemberTimers
from kaspar.groups.group import (
    CONSUMER_PROTOCOL_TYPE,
    Group,
    GroupKind,
    PartitionCheck,
    group_not_empty,
    unknown_member,
)
from kaspar.groups.surroundings import Surroundings
from kaspar.protocol.messages.consumer_group_describe import Assignment, DescribedGroup, TopicPartitions
from kaspar.protocol.messages.consumer_group_describe import Member as DescribedMember

FIRST_COMMIT_WITH_EPOCHS = 9
"""The first version of OffsetCommit that knows the epochs of the consumer protocol."""
NEVER = -1
CLASSIC_MEMBER = 0
CONSUMER_MEMBER = 1


class ConsumerGroup:
    kind = GroupKind.CONSUMER
    protocol_type: str | None = CONSUMER_PROTOCOL_TYPE

    def __init__(self, group_id: str, surroundings: Surroundings) -> None:
        self.group_id = group_id
        self.surroundings = surroundings
        self.state = ConsumerState(group_id)
        self.timers = MemberTimers(group_id)
        self.patterns_resolved_at = NEVER
        """The version of the topics in which its patterns were resolved last, since it was loaded."""
        self._looked_at_topics_for_epoch: int | None = None

    # -- the log -------------------------------------------------------------------------------------------------------

    def replay(self, record: StoredRecord) -> None:
        self.state.replay(record)

    @property
    def is_gone(self) -> bool:
        """Its last record was replayed: the shard forgets it."""
        return self.state.is_gone

    def tombstones(self) -> list[StoredRecord]:
        return self.state.tombstones()

    # -- topics --------------------------------------------------------------------------------------------------------

    def topics_changed(self, changed: Collection[str]) -> None:
        """If that concerns what it reads, the next heartbeat looks at it."""
        if not self.state.subscribed_topics().isdisjoint(changed):
            self._looked_at_topics_for_epoch = None

    @property
    def has_to_look_at_topics(self) -> bool:
        """An epoch that it decided on and does not have: the log has refused it, so what was seen then is to be seen
        again.
        """
        looked_for = self._looked_at_topics_for_epoch
        return looked_for is None or self.state.group_epoch < looked_for

    def looked_at_topics(self, epoch: int) -> None:
        self._looked_at_topics_for_epoch = epoch

    def topic_ids_of(self, member: Member) -> frozenset[uuid.UUID]:
        """The topics that a member reads, as far as they exist."""
        return self.surroundings.topic_ids(self.state.topics_of(member))

    # -- assignors -----------------------------------------------------------------------------------------------------

    def preferred_assignor(self, counts: dict[str, int] | None = None) -> str:
        """What most members ask for; of equals, and if nobody asks, what the settings name first."""
        served = self.surroundings.settings.group_consumer_assignors or tuple(ASSIGNORS)
        asked = self.state.assignors if counts is None else counts
        return max(served, key=lambda name: asked.get(name, 0))

    # -- what a group of any kind is asked -----------------------------------------------------------------------------

    @property
    def state_name(self) -> str:
        return self.state.group_state.value

    @property
    def is_empty(self) -> bool:
        return not self.state.members

    def member(self, member_id: str) -> Member:
        member = self.state.members.get(member_id)
        if member is None:
            raise unknown_member(self.group_id, member_id)
        return member

    def check_offset_commit(
        self,
        member_id: str,
        instance_id: str | None,
        generation_or_epoch: int,
        *,
        transactional: bool,
        api_version: int,
    ) -> PartitionCheck | None:
        """Whoever names no epoch is no member, and may commit while nobody is; in a transaction, old clients name
        nobody. A member whose epoch is behind may commit what it has had since that epoch: its commit has crossed a
        heartbeat.
        """
        epoch = generation_or_epoch
        if epoch < 0 and self.is_empty:
            return None
        if transactional and epoch == -1 and not member_id and instance_id is None:
            return None
        member = self.member(member_id)
        if not transactional and not member.uses_classic_protocol and api_version < FIRST_COMMIT_WITH_EPOCHS:
            raise Refused(
                ErrorCode.UNSUPPORTED_VERSION,
                f"Members of the consumer protocol commit with OffsetCommit {FIRST_COMMIT_WITH_EPOCHS} or later.",
            )
        if epoch == member.member_epoch:
            return None
        if epoch > member.member_epoch:
            raise _wrong_epoch(member, f"Epoch {epoch} is ahead of member {member_id}'s, {member.member_epoch}.")
        return lambda topic, topic_id, partition: self._check_partition(member, epoch, topic, topic_id, partition)

    def _check_partition(self, member: Member, epoch: int, topic: str, topic_id: uuid.UUID, partition: int) -> None:
        if topic_id == ZERO_UUID and (view := self.surroundings.topic(topic)) is not None:
            topic_id = view.topic_id
        since = member.epoch_of(topic_id, partition)
        if since is None:
            raise _wrong_epoch(member, f"Partition {topic}-{partition} is not assigned to member {member.member_id}.")
        if epoch < since:
            raise _wrong_epoch(member, f"Epoch {epoch} is from before {topic}-{partition} was assigned, at {since}.")

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Whoever names neither member nor epoch is an admin tool, or a client that does not know of them."""
        if member_id is None and member_epoch < 0:
            return
        member = self.member(member_id or "")
        if member_epoch != member.member_epoch:
            raise _wrong_epoch(member, f"Member {member_id} is at epoch {member.member_epoch}, not {member_epoch}.")

    def check_offset_delete(self) -> None:
        """Its members say what they read, so that what they do not read can be deleted at any time."""

    def check_delete(self) -> None:
        if not self.is_empty:
            raise group_not_empty(self.group_id)

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.state.subscribers or any(
            topic in resolved.topics for resolved in self.state.resolved.values()
        )

    def offsets_expire_from(self, topic: str, committed_at_ms: int) -> int | None:
        return None if self.is_subscribed_to(topic) else committed_at_ms

    # -- what it looks like --------------------------------------------------------------------------------------------

    def described(self) -> DescribedGroup:
        state = self.state
        return DescribedGroup(
            group_id=self.group_id,
            group_state=self.state_name,
            group_epoch=state.group_epoch,
            assignment_epoch=state.assignment_epoch,
            assignor_name=self.preferred_assignor(),
            members=tuple(self._described(member) for member in state.members.values()),
        )

    def _described(self, member: Member) -> DescribedMember:
        has = {
            topic_id: frozenset((*member.assigned.get(topic_id, ()), *member.pending_revocation.get(topic_id, ())))
            for topic_id in dict.fromkeys((*member.assigned, *member.pending_revocation))
        }
        return DescribedMember(
            member_id=member.member_id,
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            member_epoch=member.member_epoch,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=tuple(sorted(member.subscribed_topic_names)),
            subscribed_topic_regex=member.pattern,
            assignment=self._described_partitions(has),
            target_assignment=self._described_partitions(self.state.targets.get(member.member_id, NO_PARTITIONS)),
            member_type=CLASSIC_MEMBER if member.uses_classic_protocol else CONSUMER_MEMBER,
        )

    def _described_partitions(self, partitions: Partitions) -> Assignment:
        """Topics that are gone have no name, and are left out."""
        name_of = self.surroundings.topics.name_of
        return Assignment(
            topic_partitions=tuple(
                TopicPartitions(topic_id=topic_id, topic_name=name, partitions=tuple(sorted(numbers)))
                for topic_id, numbers in partitions.items()
                if (name := name_of(topic_id)) is not None
            )
        )


def _wrong_epoch(member: Member, message: str) -> Refused:
    code = ErrorCode.ILLEGAL_GENERATION if member.uses_classic_protocol else ErrorCode.STALE_MEMBER_EPOCH
    return Refused(code, message)


if TYPE_CHECKING:
    _is_a_group: type[Group] = ConsumerGroup
