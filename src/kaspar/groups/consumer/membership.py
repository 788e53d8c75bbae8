"""The members of a consumer group (KIP-848), their deadlines, and what the group knows of its topics. Requests and
timers operate on it.

The state (`ConsumerState`) comes from the log, and only `replay` changes it. Deadlines, and the epoch for which the
topics were last checked, are not durable and need not be.
"""

import uuid
from collections.abc import Collection

from kaspar.groups.consumer.assignors import ASSIGNORS
from kaspar.groups.consumer.member import Member
from kaspar.groups.consumer.records import CurrentRecords
from kaspar.groups.consumer.state import ConsumerState
from kaspar.groups.consumer.timers import MemberTimers
from kaspar.groups.context import ShardContext
from kaspar.groups.group import unknown_member

NEVER = -1


class ConsumerMembership:
    def __init__(self, group_id: str, context: ShardContext) -> None:
        self.group_id = group_id
        self.context = context
        self.state = ConsumerState(group_id)
        self.timers = MemberTimers(group_id)
        self.current_records = CurrentRecords(group_id)
        self.patterns_resolved_at = NEVER
        """The version of the topics with which the patterns were last resolved, since the group was loaded."""
        self._looked_at_topics_for_epoch: int | None = None

    # -- topics --------------------------------------------------------------------------------------------------------

    def topics_changed(self, changed: Collection[str]) -> None:
        """Make the next heartbeat check the topics if the group reads one of those that changed."""
        if not self.state.subscribed_topics().isdisjoint(changed):
            self._looked_at_topics_for_epoch = None

    @property
    def has_to_look_at_topics(self) -> bool:
        """Whether the topics have to be checked. Also true if a check decided on an epoch that the group does not have:
        the log has refused it.
        """
        looked_for = self._looked_at_topics_for_epoch
        return looked_for is None or self.state.group_epoch < looked_for

    def looked_at_topics(self, epoch: int) -> None:
        self._looked_at_topics_for_epoch = epoch

    def topic_ids_of(self, member: Member) -> frozenset[uuid.UUID]:
        """The existing topics that a member reads."""
        return self.context.topic_ids(self.state.topics_of(member))

    # -- assignors -----------------------------------------------------------------------------------------------------

    def preferred_assignor(self, counts: dict[str, int] | None = None) -> str:
        """The assignor that most members ask for; of equals, and if no member asks, the first one in the settings."""
        served = self.context.settings.group_consumer_assignors or tuple(ASSIGNORS)
        asked = self.state.assignors if counts is None else counts
        return max(served, key=lambda name: asked.get(name, 0))

    # -- members -------------------------------------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        return not self.state.members

    def member(self, member_id: str) -> Member:
        member = self.state.members.get(member_id)
        if member is None:
            raise unknown_member(self.group_id, member_id)
        return member
