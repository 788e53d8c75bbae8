"""All groups whose ids fall to one partition of `__consumer_offsets`: who they are, and what they have committed.

A router, and no more. It finds the group that a request names, or makes it; the rules are in the groups and in the
offsets. Records come back through `replay`, one by one, the same after a restart as while running: a group of one
kind that is followed by records of the other has been converted, and gives way.
"""

from collections.abc import Hashable

from kaspar.config.broker.groups import GroupSettings
from kaspar.coordination import Decision, Now, ProducerIdAndEpoch, StoredRecord, Ticket
from kaspar.groups.group import Client, Group
from kaspar.groups.topics import TopicsView
from kaspar.protocol.messages.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from kaspar.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kaspar.protocol.messages.delete_groups import DeletableGroupResult
from kaspar.protocol.messages.describe_groups import DescribedGroup
from kaspar.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kaspar.protocol.messages.join_group import JoinGroupRequest
from kaspar.protocol.messages.leave_group import LeaveGroupRequest
from kaspar.protocol.messages.list_groups import ListedGroup, ListGroupsRequest
from kaspar.protocol.messages.offset_commit import OffsetCommitRequest
from kaspar.protocol.messages.offset_delete import OffsetDeleteRequest
from kaspar.protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from kaspar.protocol.messages.sync_group import SyncGroupRequest
from kaspar.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest


class GroupShard:
    """`settings` may be replaced while running: the settings of consumer groups are dynamic."""

    def __init__(self, settings: GroupSettings, partition: int) -> None: ...

    def group(self, group_id: str) -> Group | None: ...

    # -- classic groups ------------------------------------------------------------------------------------------------

    def join(self, request: JoinGroupRequest, client: Client, ticket: Ticket, now: Now) -> Decision: ...

    def sync(self, request: SyncGroupRequest, client: Client, ticket: Ticket, now: Now) -> Decision: ...

    def heartbeat(self, request: HeartbeatRequest, ticket: Ticket, now: Now) -> Decision: ...

    def heartbeat_at_once(self, request: HeartbeatRequest, now: Now) -> HeartbeatResponse | None: ...

    def leave(self, request: LeaveGroupRequest, client: Client, ticket: Ticket, now: Now) -> Decision: ...

    def describe(self, group_id: str, now: Now) -> DescribedGroup: ...

    # -- consumer groups (KIP-848) -------------------------------------------------------------------------------------

    def consumer_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, client: Client, ticket: Ticket, now: Now
    ) -> Decision: ...

    def consumer_describe(self, group_id: str, now: Now) -> DescribedConsumerGroup: ...

    def topics_changed(self, topics: TopicsView, now: Now) -> Decision: ...

    # -- groups of any kind --------------------------------------------------------------------------------------------

    def list_groups(self, request: ListGroupsRequest, now: Now) -> list[ListedGroup]: ...

    def delete(self, group_ids: tuple[str, ...], ticket: Ticket, now: Now) -> Decision: ...

    # -- offsets -------------------------------------------------------------------------------------------------------

    def commit(self, request: OffsetCommitRequest, client: Client, ticket: Ticket, now: Now) -> Decision: ...

    def commit_in_transaction(
        self, request: TxnOffsetCommitRequest, client: Client, ticket: Ticket, now: Now
    ) -> Decision: ...

    def fetch(
        self, request: OffsetFetchRequestGroup, require_stable: bool, now: Now
    ) -> OffsetFetchResponseGroup: ...

    def delete_offsets(self, request: OffsetDeleteRequest, ticket: Ticket, now: Now) -> Decision: ...

    # -- the log -------------------------------------------------------------------------------------------------------

    def decode(self, key: bytes, value: bytes | None) -> StoredRecord | None: ...

    def encode(self, record: StoredRecord) -> tuple[bytes, bytes | None]: ...

    def replay(self, record: StoredRecord, producer: ProducerIdAndEpoch | None) -> None: ...

    def replay_marker(self, producer: ProducerIdAndEpoch, *, committed: bool) -> None: ...

    def loaded(self, now: Now) -> Decision: ...

    def timer_fired(self, key: Hashable, now: Now) -> Decision: ...
