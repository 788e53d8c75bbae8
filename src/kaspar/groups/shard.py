"""The groups whose ids belong to one partition of `__consumer_offsets`, and their committed offsets:
GroupCoordinatorShard in Kafka.

The shard only routes: it finds the group that a request names, or creates it. The rules are in the groups and in the
offsets. There is one method for each API. A method for a request that may change something returns a Decision, one for
a query returns the response, and a refused request raises `Refused`.
"""

import uuid
from collections.abc import Collection, Hashable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.config.broker.groups import GroupSettings
from kaspar.coordination import Decision, Now, Shard, StoredRecord, Ticket
from kaspar.groups import records
from kaspar.groups.classic.state import ClassicState
from kaspar.groups.classic_group import ClassicGroup
from kaspar.groups.consumer.member import JOINS
from kaspar.groups.consumer.patterns import PatternsResolved
from kaspar.groups.consumer.target import AssignmentComputed
from kaspar.groups.consumer_group import ConsumerGroup
from kaspar.groups.context import ShardContext
from kaspar.groups.counts import GroupCounts
from kaspar.groups.deleted_topics import DELETE_OFFSETS, Deleted, DeletedTopics
from kaspar.groups.expiration import EXPIRE, OffsetExpiration
from kaspar.groups.group import (
    Committer,
    Group,
    GroupClient,
    GroupTimer,
    PartitionCheck,
    group_not_found,
    unknown_member,
)
from kaspar.groups.offsets.commits import Commit, TransactionalCommit
from kaspar.groups.offsets.committed import CommittedOffsets, Offsets
from kaspar.groups.resumption import RESUME, Resumption
from kaspar.groups.table import GroupTable
from kaspar.groups.topics import TopicsView
from kaspar.protocol.messages.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from kaspar.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kaspar.protocol.messages.delete_groups import DeletableGroupResult
from kaspar.protocol.messages.describe_groups import DescribedGroup
from kaspar.protocol.messages.heartbeat import HeartbeatRequest
from kaspar.protocol.messages.join_group import JoinGroupRequest
from kaspar.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse
from kaspar.protocol.messages.list_groups import ListedGroup, ListGroupsRequest
from kaspar.protocol.messages.offset_delete import OffsetDeleteRequest
from kaspar.protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from kaspar.protocol.messages.sync_group import SyncGroupRequest

FIRST_COMMIT_OF_CONSUMER_GROUPS: Final = 9
FIRST_DESCRIBE_WITH_NOT_FOUND: Final = 6
NOTHING_DELETED: Final[Mapping[str, Collection[uuid.UUID]]] = MappingProxyType({})


class GroupShard:
    def __init__(self, settings: GroupSettings, partition: int, counts: GroupCounts | None = None) -> None:
        """`counts` may be shared by several shards."""
        self.partition = partition
        self.counts = counts or GroupCounts()
        self.context = ShardContext(settings)
        self.offsets = Offsets(settings, self.counts)
        self._table = GroupTable(self.context, self.offsets, self.counts)
        self._resumption = Resumption(self._table)
        self._expiration = OffsetExpiration(self._table, self.offsets, self.context, self.counts)
        self._deleted_topics = DeletedTopics(self.offsets)

    @property
    def groups(self) -> Mapping[str, Group]:
        return self._table.groups

    # -- the classic protocol ------------------------------------------------------------------------------------------

    def join(self, request: JoinGroupRequest, client: GroupClient, ticket: Ticket, now: Now) -> Decision:
        group = self._table.get(request.group_id)
        if group is None:
            return self._join_new_group([], request, client, ticket, now)
        if group.yields_to_classic:
            return self._join_new_group(group.tombstones(), request, client, ticket, now)
        return group.join(request, client, ticket, now)

    def _join_new_group(
        self, tombstones: list[StoredRecord], request: JoinGroupRequest, client: GroupClient, ticket: Ticket, now: Now
    ) -> Decision:
        """Create a group for a join. If the client already has a member id, its group is gone, and none is created."""
        group = ClassicGroup(request.group_id, self.context)
        decision = group.join(request, client, ticket, now)
        if group.is_empty and not group.is_awaited:
            return decision

        def refused(code: ErrorCode, later: Now) -> Decision:
            self._table.discard_new(group.group_id)
            return Decision(replies=group.refuse_waiting(code))

        assert not decision.records
        assert decision.if_refused is None
        self._table.add_new(group)
        decision.records = [*tombstones, group.new_group_record(now)]
        decision.if_refused = refused
        return decision

    def sync(self, request: SyncGroupRequest, ticket: Ticket, now: Now) -> Decision:
        group = self._table.get(request.group_id)
        if group is None:
            raise unknown_member(request.group_id, request.member_id)
        return group.sync(request, ticket, now)

    def heartbeat(self, request: HeartbeatRequest, now: Now) -> Decision:
        group = self._table.get(request.group_id)
        if group is None:
            raise unknown_member(request.group_id, request.member_id)
        return group.heartbeat(request, now)

    def leave(self, request: LeaveGroupRequest, now: Now) -> Decision:
        group = self._table.get(request.group_id)
        if group is not None:
            return group.leave(request, now)
        members = tuple(
            MemberResponse(
                member_id=identity.member_id,
                group_instance_id=identity.group_instance_id,
                error_code=ErrorCode.UNKNOWN_MEMBER_ID,
            )
            for identity in request.members
        )
        return Decision(response=LeaveGroupResponse(members=members))

    def describe(self, group_id: str, api_version: int, now: Now) -> DescribedGroup:
        """Describe a group. One that does not exist or is not classic is Dead; since version 6 (KIP-1043) with an
        error.
        """
        try:
            return self._table[group_id].describe()
        except Refused as refusal:
            has_error = api_version >= FIRST_DESCRIBE_WITH_NOT_FOUND
            return DescribedGroup(
                error_code=refusal.code if has_error else ErrorCode.NONE,
                error_message=refusal.message if has_error else None,
                group_id=group_id,
                group_state=ClassicState.DEAD.value,
                protocol_type="",
                protocol_data="",
                members=(),
            )

    # -- the consumer protocol (KIP-848) -------------------------------------------------------------------------------

    def consumer_heartbeat(self, request: ConsumerGroupHeartbeatRequest, client: GroupClient, now: Now) -> Decision:
        group = self._table.get(request.group_id)
        if group is None:
            if request.member_epoch != JOINS:
                raise group_not_found(request.group_id)
            group = ConsumerGroup(request.group_id, self.context)
        return group.consumer_heartbeat(request, client, now)

    def consumer_describe(self, group_id: str, now: Now) -> DescribedConsumerGroup:
        return self._table[group_id].consumer_describe()

    def patterns_resolved(self, event: PatternsResolved, now: Now) -> Decision:
        self.context.resolving.discard(event.group_id)
        group = self._table.consumer_group(event.group_id)
        return Decision() if group is None else group.patterns_resolved(event, now)

    def assignment_computed(self, event: AssignmentComputed, now: Now) -> Decision:
        if self.context.computing.get(event.group_id) == event.epoch:
            del self.context.computing[event.group_id]
        group = self._table.consumer_group(event.group_id)
        return Decision() if group is None else group.assignment_computed(event, now)

    # -- groups of any kind --------------------------------------------------------------------------------------------

    def list_groups(self, request: ListGroupsRequest) -> Iterator[ListedGroup | None]:
        """Yield each group, or None where a filter excludes it. Other events may be handled between two of them. A
        filter with an unknown state or type matches no group.
        """
        states = {state.strip().lower() for state in request.states_filter}
        types = {kind.lower() for kind in request.types_filter}
        for group in tuple(self._table.groups.values()):
            if (not states or group.state_name.lower() in states) and (not types or group.kind.value in types):
                yield ListedGroup(
                    group_id=group.group_id,
                    protocol_type=group.protocol_type or "",
                    group_state=group.state_name,
                    group_type=group.kind.value,
                )
            else:
                yield None

    def delete(self, group_id: str, now: Now) -> Decision:
        group = self._table[group_id]
        group.check_delete()
        deleted = self.offsets.forget_group(group_id)
        self.counts.offset_deletions += len(deleted)
        return Decision([*deleted, *group.tombstones()], DeletableGroupResult(group_id=group_id))

    def topics_changed(
        self,
        topics: TopicsView,
        changed: Collection[str],
        now: Now,
        *,
        deleted: Mapping[str, Collection[uuid.UUID]] = NOTHING_DELETED,
    ) -> Decision:
        """`changed` are the names of topics that were created, changed or deleted. `deleted` has the ids of topics that
        were reported as deleted, by name. Their offsets are removed; a topic that is only missing keeps its offsets.
        """
        gone = {name: each for name in {*changed, *deleted} if (each := self._deleted(topics, name, deleted)).topic_ids}
        self.context.change_topics(topics, changed)
        for group in self._table.groups.values():
            group.topics_changed(changed)
        return self._deleted_topics.add(gone, now) if gone else Decision()

    def _deleted(self, topics: TopicsView, name: str, deleted: Mapping[str, Collection[uuid.UUID]]) -> Deleted:
        """The deleted topics of this name. A topic whose name belongs to another one now is deleted too."""
        before, after = self.context.topics.topic(name), topics.topic(name)
        topic_ids = set(deleted.get(name, ()))
        if before is not None and after is not None and before.topic_id != after.topic_id:
            topic_ids.add(before.topic_id)
        return Deleted(frozenset(topic_ids), before is not None and before.topic_id in topic_ids)

    # -- offsets -------------------------------------------------------------------------------------------------------

    def commit(self, commit: Commit, now: Now) -> Decision:
        group = self._table.get(commit.group_id)
        check = _check_commit(group, commit, transactional=False)
        offsets, replay = self.offsets, self.offsets.replay_single
        if group is None:
            replay = self._table.replay_single
        elif commit.member_id:
            group.offsets_committed(commit.member_id, now)
        return commit.decide(check, now.wall_ms, offsets.max_metadata_bytes, replay)

    def commit_in_transaction(self, commit: TransactionalCommit, now: Now) -> Decision:
        check = _check_commit(self._table.get(commit.group_id), commit, transactional=True)
        committed, response = self.offsets.commit_in_transaction(commit.request, check, now.wall_ms)
        return Decision(committed, response, producer=commit.producer)

    def fetch(self, request: OffsetFetchRequestGroup, require_stable: bool, now: Now) -> OffsetFetchResponseGroup:
        self._check_fetch(request)
        return self.offsets.fetch(request, require_stable=require_stable)

    def copy_to_fetch(self, request: OffsetFetchRequestGroup, require_stable: bool, now: Now) -> CommittedOffsets:
        """A copy of what `fetch` reads, from which another thread can make the response."""
        self._check_fetch(request)
        return self.offsets.copy_of(request.group_id, require_stable=require_stable)

    def _check_fetch(self, request: OffsetFetchRequestGroup) -> None:
        group = self._table.get(request.group_id)
        if group is not None:
            group.check_offset_fetch(request.member_id, request.member_epoch)

    def delete_offsets(self, request: OffsetDeleteRequest, now: Now) -> Decision:
        group = self._table[request.group_id]
        group.check_offset_delete()
        deleted, response = self.offsets.delete(request, group)
        self.counts.offset_deletions += len(deleted)
        return Decision(deleted, response)

    # -- the log -------------------------------------------------------------------------------------------------------

    def decode(self, key: bytes, value: bytes | None) -> StoredRecord | None:
        return records.decode(key, value)

    def encode(self, record: StoredRecord) -> tuple[bytes, bytes | None]:
        return records.encode(record)

    def replay(self, record: StoredRecord, producer: ProducerIdAndEpoch | None) -> None:
        self._table.replay(record, producer)

    def load(self, key: bytes, value: bytes | None, producer: ProducerIdAndEpoch | None) -> bool:
        if producer is None and value is not None and self.offsets.load(key, value):
            return True
        record = self.decode(key, value)
        if record is not None:
            self._table.replay(record, producer)
        return record is not None

    def replay_marker(self, producer: ProducerIdAndEpoch, *, committed: bool) -> None:
        self.offsets.replay_marker(producer.producer_id, committed=committed)

    def loaded(self, now: Now) -> Decision:
        self.offsets.loaded()
        self._table.loaded()
        decision = self._resumption.begin(now)
        decision.add_timers((self._expiration.next_round(now),))
        return decision

    # -- timers --------------------------------------------------------------------------------------------------------

    def timer_fired(self, key: Hashable, now: Now) -> Decision:
        if isinstance(key, GroupTimer):
            group = self._table.get(key.group_id)
            return Decision() if group is None else group.timer_fired(key, now)
        if key == EXPIRE:
            return self._expiration.expire(now)
        if key == DELETE_OFFSETS:
            return self._deleted_topics.delete_offsets(now)
        assert key == RESUME, f"no timer of a group shard has the key {key!r}"
        return self._resumption.resume(now)


def _check_commit(group: Group | None, committer: Committer, *, transactional: bool) -> PartitionCheck | None:
    """OffsetMetadataManager.validateOffsetCommit. A commit without a member may name a group that does not exist, which
    is then created. A request version without consumer groups is refused with a code that it has.
    """
    if group is None:
        if committer.generation_or_epoch < 0:
            return None
        refusal = group_not_found(committer.group_id)
        if transactional or committer.api_version < FIRST_COMMIT_OF_CONSUMER_GROUPS:
            raise Refused(ErrorCode.ILLEGAL_GENERATION, refusal.message)
        raise refusal
    try:
        return group.check_offset_commit(committer, transactional=transactional)
    except Refused as refusal:
        is_old = committer.api_version < FIRST_COMMIT_OF_CONSUMER_GROUPS
        if refusal.code is ErrorCode.STALE_MEMBER_EPOCH and (transactional or is_old):
            code = ErrorCode.ILLEGAL_GENERATION if transactional else ErrorCode.UNSUPPORTED_VERSION
            raise Refused(code, refusal.message) from refusal
        raise


if TYPE_CHECKING:
    _is_a_shard: type[Shard] = GroupShard
