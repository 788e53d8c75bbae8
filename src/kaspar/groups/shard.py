"""All groups whose ids fall to one partition of `__consumer_offsets`: who they are, and what they have committed.

A router, and no more. It finds the group that a request names, or makes it; the rules are in the groups and in the
offsets. Records come back through `replay`, one by one, the same after a restart as while running: a group of one
kind that is followed by records of the other has been converted, and gives way. A group that is new comes to be when
the record that says so is in the log, and not before.
"""

import uuid
from collections import deque
from collections.abc import Collection, Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ZERO_UUID, ProducerIdAndEpoch
from kaspar.config.broker.groups import GroupSettings
from kaspar.coordination import Decision, Now, OneRecord, Reply, Shard, StoredRecord, Ticket, Timer
from kaspar.groups import (
    classic_at_once,
    classic_rebalance,
    classic_requests,
    consumer_assigning,
    consumer_at_once,
    consumer_classic,
    consumer_departures,
    consumer_patterns,
    consumer_requests,
    records,
)
from kaspar.groups.classic import ClassicGroup
from kaspar.groups.classic_state import ClassicState
from kaspar.groups.consumer import ConsumerGroup
from kaspar.groups.consumer_at_once import PlainHeartbeat
from kaspar.groups.counts import GroupCounts
from kaspar.groups.frequent_commit import FrequentCommit
from kaspar.groups.group import Client, Group, GroupTimer, PartitionCheck, group_not_found, unknown_member
from kaspar.groups.migration import DOWNGRADED, DOWNGRADED_AND_REBALANCES
from kaspar.groups.offsets import CommittedOffsets, Offsets, Piece
from kaspar.groups.patterns import PatternsResolved
from kaspar.groups.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from kaspar.groups.rounds import Round
from kaspar.groups.surroundings import Surroundings
from kaspar.groups.target import AssignmentComputed
from kaspar.groups.topics import TopicsView
from kaspar.protocol.messages.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from kaspar.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kaspar.protocol.messages.delete_groups import DeletableGroupResult
from kaspar.protocol.messages.describe_groups import DescribedGroup
from kaspar.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kaspar.protocol.messages.join_group import JoinGroupRequest
from kaspar.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse
from kaspar.protocol.messages.list_groups import ListedGroup, ListGroupsRequest
from kaspar.protocol.messages.offset_commit import OffsetCommitRequest
from kaspar.protocol.messages.offset_delete import OffsetDeleteRequest
from kaspar.protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from kaspar.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kaspar.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from kaspar.protocol.schema import Message

AnyGroup: TypeAlias = ClassicGroup | ConsumerGroup
ConsumerGroupKey: TypeAlias = (
    ConsumerGroupMetadataKey
    | ConsumerGroupPartitionMetadataKey
    | ConsumerGroupMemberMetadataKey
    | ConsumerGroupTargetAssignmentMetadataKey
    | ConsumerGroupTargetAssignmentMemberKey
    | ConsumerGroupCurrentMemberAssignmentKey
    | ConsumerGroupRegularExpressionKey
)

SWEEP: Final = "sweep"
"""The timer of the round that looks for expired offsets."""
FORGET_TOPICS: Final = "forget topics"
"""The timer that goes on with forgetting what was committed for topics that are gone."""
RESUME: Final = "resume"
"""The timer that goes on with the groups that were loaded."""
LOOKED_AT_AT_ONCE: Final = 1000
"""So many offsets and groups are looked at before the event loop does something else ..."""
FORGOTTEN_AT_ONCE: Final = 250
"""... or so many are forgotten: their tombstones are one batch."""
AGAIN_AFTER_MS: Final = 1000
FIRST_COMMIT_OF_CONSUMER_GROUPS: Final = 9
FIRST_DESCRIBE_WITH_NOT_FOUND: Final = 6

_new = tuple.__new__  # a named tuple's own constructor takes three times as long


class GroupShard:
    def __init__(self, settings: GroupSettings, partition: int, counts: GroupCounts | None = None) -> None:
        """`counts` may be those of several shards."""
        self.partition = partition
        self.counts = counts or GroupCounts()
        self.surroundings = Surroundings(settings)
        self.offsets = Offsets(settings)
        self._groups: dict[str, AnyGroup] = {}
        self._coming: dict[str, ClassicGroup] = {}
        """Groups that have just been made, until their first record is in the log."""
        self._is_loading = True
        self._resuming: deque[str] = deque()
        """Groups that were loaded, the sessions of whose members have yet to begin."""
        self._sweeping = Round()
        self._forgetting = Round()
        self._gone: dict[str, uuid.UUID] = {}
        """Topics that were deleted, of which not all offsets are forgotten yet; and who has their names now."""

    @property
    def groups(self) -> Mapping[str, Group]:
        return self._groups

    def _group(self, group_id: str) -> AnyGroup:
        group = self._groups.get(group_id)
        if group is None:
            raise group_not_found(group_id)
        return group

    # -- the classic protocol ------------------------------------------------------------------------------------------

    def join(self, request: JoinGroupRequest, client: Client, ticket: Ticket, now: Now) -> Decision:
        """An empty consumer group gives way to a classic one."""
        group = self._groups.get(request.group_id)
        if group is None:
            return self._join_new_group([], request, client, ticket, now)
        if isinstance(group, ClassicGroup):
            return classic_requests.join(group, request, client, ticket, now)
        if group.is_empty:
            return self._join_new_group(group.tombstones(), request, client, ticket, now)
        return consumer_classic.join(group, request, client, ticket, now)

    def join_again(self, request: JoinGroupRequest, protocols: dict[str, bytes], ticket: Ticket) -> bool:
        """Whether that was all that `join` does: the member waits until all have joined. False: ask `join`."""
        group = self._groups.get(request.group_id)
        return type(group) is ClassicGroup and classic_at_once.join_again(group, request, protocols, ticket)

    def _join_new_group(
        self, tombstones: list[StoredRecord], request: JoinGroupRequest, client: Client, ticket: Ticket, now: Now
    ) -> Decision:
        """Whoever has a member id already is a member of something that is gone: no group is made for it."""
        group_id = request.group_id
        group = ClassicGroup(group_id, self.surroundings.settings)
        decision = classic_requests.join(group, request, client, ticket, now)
        if group.is_empty and not group.roster.pending:
            return decision

        def refused(code: ErrorCode, later: Now) -> Decision:
            del self._coming[group_id]
            return Decision(replies=group.answer_waiting(code))

        assert not decision.records
        assert decision.if_refused is None
        self._coming[group_id] = group
        decision.records = [*tombstones, group.new_group_record(now)]
        decision.if_refused = refused
        return decision

    def sync(self, request: SyncGroupRequest, ticket: Ticket, now: Now) -> Decision:
        group = self._groups.get(request.group_id)
        if group is None or group.is_empty:
            raise unknown_member(request.group_id, request.member_id)
        if isinstance(group, ClassicGroup):
            return classic_requests.sync(group, request, ticket, now)
        return consumer_classic.sync(group, request, ticket, now)

    def sync_at_once(self, request: SyncGroupRequest) -> SyncGroupResponse | None:
        """What `sync` answers a member whose assignment is there already, and committed. None: ask `sync`."""
        group = self._groups.get(request.group_id)
        if type(group) is not ClassicGroup:
            return None
        assignment = classic_at_once.assignment_of(group, request, request.generation_id)
        return None if assignment is None else classic_rebalance.synced(group, assignment)

    def assignment_at_once(self, request: SyncGroupRequest, generation_id: int) -> bytes | None:
        """The same for a request that came before, in another generation: the assignment alone."""
        group = self._groups.get(request.group_id)
        if type(group) is not ClassicGroup:
            return None
        return classic_at_once.assignment_of(group, request, generation_id)

    def await_assignment(self, request: SyncGroupRequest, generation_id: int, ticket: Ticket) -> bool:
        """Whether that was all that `sync` does: the member waits for the leader. False: ask `sync`."""
        group = self._groups.get(request.group_id)
        return type(group) is ClassicGroup and classic_at_once.await_assignment(group, request, generation_id, ticket)

    def heartbeat(self, request: HeartbeatRequest, ticket: Ticket, now: Now) -> Decision:
        group = self._groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            return consumer_classic.heartbeat(group, request, ticket, now)
        if group is None:
            raise unknown_member(request.group_id, request.member_id)
        return Decision(replies=[Reply(ticket, classic_requests.heartbeat(group, request, request.generation_id, now))])

    def heartbeat_at_once(self, request: HeartbeatRequest, generation_id: int, now: Now) -> HeartbeatResponse | None:
        """What `heartbeat` answers, without a decision where none is needed: nothing durable changes, and there is
        nothing to wait for. None: ask `heartbeat`.
        """
        group = self._groups.get(request.group_id)
        return classic_requests.heartbeat(group, request, generation_id, now) if type(group) is ClassicGroup else None

    def leave(self, request: LeaveGroupRequest, ticket: Ticket, now: Now) -> Decision:
        group = self._groups.get(request.group_id)
        if isinstance(group, ClassicGroup):
            return classic_requests.leave(group, request, ticket, now)
        if isinstance(group, ConsumerGroup):
            return consumer_classic.leave(group, request, ticket, now)
        response = LeaveGroupResponse(
            members=tuple(
                MemberResponse(
                    member_id=identity.member_id,
                    group_instance_id=identity.group_instance_id,
                    error_code=ErrorCode.UNKNOWN_MEMBER_ID,
                )
                for identity in request.members
            )
        )
        return Decision(replies=[Reply(ticket, response)])

    def describe(self, group_id: str, api_version: int, now: Now) -> DescribedGroup:
        """A classic group that is not there is Dead; since version 6 it is also said to be not there."""
        group = self._groups.get(group_id)
        if isinstance(group, ClassicGroup):
            return group.described()
        says_so = api_version >= FIRST_DESCRIBE_WITH_NOT_FOUND
        what = "not found" if group is None else "is not a classic group"
        return DescribedGroup(
            error_code=ErrorCode.GROUP_ID_NOT_FOUND if says_so else ErrorCode.NONE,
            error_message=f"Group {group_id} {what}." if says_so else None,
            group_id=group_id,
            group_state=ClassicState.DEAD.value,
            protocol_type="",
            protocol_data="",
            members=(),
        )

    # -- the consumer protocol (KIP-848) -------------------------------------------------------------------------------

    def consumer_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, client: Client, ticket: Ticket, now: Now
    ) -> Decision:
        group = self._groups.get(request.group_id)
        return consumer_requests.consumer_heartbeat(group, request, client, ticket, now, self.surroundings)

    def consumer_heartbeat_at_once(
        self, request: ConsumerGroupHeartbeatRequest, client: Client, now: Now
    ) -> ConsumerGroupHeartbeatResponse | None:
        """What `consumer_heartbeat` answers, where nothing durable changes. None: ask that."""
        return consumer_requests.heartbeat_at_once(self._groups.get(request.group_id), request, client, now)

    def live_on(self, heartbeat: PlainHeartbeat, epoch: int, now: Now) -> bool:
        """Whether `consumer_heartbeat` does no more than to let the session of this member go on, which is done."""
        return consumer_at_once.live_on(self._groups.get(heartbeat.group_id), heartbeat, epoch, now)

    def move_on(self, heartbeat: PlainHeartbeat, epoch: int, now: Now) -> OneRecord | None:
        """What `consumer_heartbeat` decides for a member that moves to the target's epoch with what it has. None: ask
        that.
        """
        return consumer_at_once.move_on(self._groups.get(heartbeat.group_id), heartbeat, epoch, now)

    def assignment_epoch(self, group_id: str) -> int | None:
        """The epoch of a consumer group's target."""
        group = self._groups.get(group_id)
        return group.state.assignment_epoch if type(group) is ConsumerGroup else None

    def consumer_describe(self, group_id: str, now: Now) -> DescribedConsumerGroup:
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group.described()
        what = "not found" if group is None else "is not a consumer group"
        raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {what}.")

    def patterns_resolved(self, event: PatternsResolved, now: Now) -> Decision:
        return consumer_patterns.patterns_resolved(self._groups.get(event.group_id), event, now, self.surroundings)

    def assignment_computed(self, event: AssignmentComputed, now: Now) -> Decision:
        return consumer_assigning.assignment_computed(self._groups.get(event.group_id), event, now, self.surroundings)

    # -- groups of any kind --------------------------------------------------------------------------------------------

    def list_groups(self, request: ListGroupsRequest) -> Iterator[ListedGroup | None]:
        """Of each group: None if it passes not all filters. Other events may come while somebody goes through them. A
        state or a type that nobody knows is the state or type of no group.
        """
        states = {state.strip().lower() for state in request.states_filter}
        types = {kind.lower() for kind in request.types_filter}
        for group in tuple(self._groups.values()):
            if (not states or group.state_name.lower() in states) and (not types or group.kind.value in types):
                yield ListedGroup(
                    group_id=group.group_id,
                    protocol_type=group.protocol_type or "",
                    group_state=group.state_name,
                    group_type=group.kind.value,
                )
            else:
                yield None

    def delete(self, group_id: str, ticket: Ticket, now: Now) -> Decision:
        group = self._group(group_id)
        group.check_delete()
        forgotten = self.offsets.forget_group(group_id)
        self.counts.offset_deletions += len(forgotten)
        return Decision(
            records=[*forgotten, *group.tombstones()],
            replies=[Reply(ticket, DeletableGroupResult(group_id=group_id))],
        )

    def topics_changed(self, topics: TopicsView, changed: Collection[str], now: Now) -> Decision:
        """`changed` are the names of topics that came, went, or look different now. What was committed for a topic that
        is gone goes with it.
        """
        known = self.surroundings.topics
        successors = {}
        for name in changed:
            before, after = known.topic(name), topics.topic(name)
            if after is None:
                successors[name] = ZERO_UUID
            elif name in self._gone or (before is not None and before.topic_id != after.topic_id):
                successors[name] = after.topic_id
        self.surroundings.change_topics(topics, changed)
        for group in self._groups.values():
            if isinstance(group, ConsumerGroup):
                group.topics_changed(changed)
        if not successors:
            return Decision()
        self._gone.update(successors)
        self._forgetting.clear()  # what is gone by now is looked for in all groups
        return Decision(timers=[Timer(FORGET_TOPICS, now.steady_ms)])

    def _forget_topics(self, now: Now) -> Decision:
        """A slice of what was committed for topics that are gone. If the log refuses it, all again after a while."""
        gone, groups = self._gone, self._forgetting
        if not groups:
            groups.begin(self.offsets.groups_with_offsets())

        def refused(code: ErrorCode, later: Now) -> Decision:
            self._gone = gone | self._gone
            groups.clear()
            return Decision(timers=[Timer(FORGET_TOPICS, later.steady_ms + AGAIN_AFTER_MS)])

        decision = Decision(if_refused=refused)
        looked_at = 0
        while groups and looked_at < LOOKED_AT_AT_ONCE and len(decision.records) < FORGOTTEN_AT_ONCE:
            group_id, pieces = groups.take()
            if pieces is None:
                pieces = self.offsets.pieces_of(group_id, gone)
                decision.records += self.offsets.pending_for(group_id, gone)
            looked_at += 1
            if pieces:
                piece = pieces.pop()
                looked_at += len(piece.partitions)
                decision.records += self.offsets.topic_deleted(group_id, piece, gone[piece.topic])
            if pieces:
                groups.put_back(group_id, pieces)
        if groups:
            decision.timers.append(Timer(FORGET_TOPICS, now.steady_ms))
        else:
            self._gone = {}
        return decision

    # -- offsets -------------------------------------------------------------------------------------------------------

    def commit(self, request: OffsetCommitRequest, client: Client, ticket: Ticket, now: Now) -> Decision:
        check = self._check_commit(
            request.group_id,
            request.member_id,
            request.group_instance_id,
            request.generation_id_or_member_epoch,
            transactional=False,
            api_version=client.api_version,
        )
        group = self._groups.get(request.group_id)
        if isinstance(group, ClassicGroup):
            classic_requests.offsets_committed(group, request.member_id, now)
        committed, response = self.offsets.commit(request, check, now.wall_ms)
        self.counts.offset_commits += len(committed)
        return Decision(records=committed, replies=[Reply(ticket, response)])

    def commit_at_once(self, commit: FrequentCommit, offset: int, leader_epoch: int, now: Now) -> OneRecord | None:
        """What `commit` decides, for a commit as most are, of a group that is there. None: ask `commit`."""
        group = self._groups.get(commit.group_id)
        if group is None or self.offsets.has_pending:
            return None
        check = self._check_commit(
            commit.group_id,
            commit.member_id,
            commit.instance_id,
            commit.generation_or_epoch,
            transactional=False,
            api_version=commit.api_version,
        )
        if check is not None:
            check(commit.topic, commit.topic_id, commit.partition)
        if type(group) is ClassicGroup:
            classic_requests.offsets_committed(group, commit.member_id, now)
        now_ms = now.wall_ms

        def take_in() -> None:
            self.counts.offset_commits += 1
            self.offsets.take_in(commit, offset, leader_epoch, now_ms)

        return _new(OneRecord, (commit.key, commit.value(offset, leader_epoch, now_ms), take_in))

    def commit_in_transaction(
        self, request: TxnOffsetCommitRequest, client: Client, ticket: Ticket, now: Now
    ) -> Decision:
        check = self._check_commit(
            request.group_id,
            request.member_id,
            request.group_instance_id,
            request.generation_id,
            transactional=True,
            api_version=client.api_version,
        )
        committed, response = self.offsets.commit_in_transaction(request, check, now.wall_ms)
        self.counts.offset_commits += len(committed)
        producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
        return Decision(records=committed, replies=[Reply(ticket, response)], producer=producer)

    def _check_commit(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation: int,
        *,
        transactional: bool,
        api_version: int,
    ) -> PartitionCheck | None:
        """Offsets that no member commits may be those of no group: it comes to be with them. A client whose version
        knows no consumer groups is told in words that it knows.
        """
        group = self._groups.get(group_id)
        if group is None:
            if generation < 0:
                return None
            if transactional or api_version < FIRST_COMMIT_OF_CONSUMER_GROUPS:
                raise Refused(ErrorCode.ILLEGAL_GENERATION, f"Group {group_id} not found.")
            raise group_not_found(group_id)
        try:
            return group.check_offset_commit(
                member_id, instance_id, generation, transactional=transactional, api_version=api_version
            )
        except Refused as refusal:
            if refusal.code is ErrorCode.STALE_MEMBER_EPOCH:
                if transactional:
                    raise Refused(ErrorCode.ILLEGAL_GENERATION, refusal.message) from refusal
                if api_version < FIRST_COMMIT_OF_CONSUMER_GROUPS:
                    raise Refused(ErrorCode.UNSUPPORTED_VERSION, refusal.message) from refusal
            raise

    def fetch(self, request: OffsetFetchRequestGroup, require_stable: bool, now: Now) -> OffsetFetchResponseGroup:
        self._check_fetch(request)
        return self.offsets.fetch(request, require_stable=require_stable)

    def copy_to_fetch(self, request: OffsetFetchRequestGroup, require_stable: bool, now: Now) -> CommittedOffsets:
        """What `fetch` answers from, so that another thread can."""
        self._check_fetch(request)
        return self.offsets.copy_of(request.group_id, require_stable=require_stable)

    def _check_fetch(self, request: OffsetFetchRequestGroup) -> None:
        group = self._groups.get(request.group_id)
        if group is not None:
            group.check_offset_fetch(request.member_id, request.member_epoch)

    def delete_offsets(self, request: OffsetDeleteRequest, ticket: Ticket, now: Now) -> Decision:
        group = self._group(request.group_id)
        group.check_offset_delete()
        deleted, response = self.offsets.delete(request, group)
        self.counts.offset_deletions += len(deleted)
        return Decision(records=deleted, replies=[Reply(ticket, response)])

    # -- the log -------------------------------------------------------------------------------------------------------

    def decode(self, key: bytes, value: bytes | None) -> StoredRecord | None:
        return records.decode(key, value)

    def encode(self, record: StoredRecord) -> tuple[bytes, bytes | None]:
        return records.encode(record)

    def replay(self, record: StoredRecord, producer: ProducerIdAndEpoch | None) -> None:
        key, value = record
        if isinstance(key, OffsetCommitKey):
            self._replay_offset(key, value, producer)
        elif isinstance(key, GroupMetadataKey):
            self._replay_classic(key.group, value)
        else:
            assert isinstance(key, ConsumerGroupKey)
            self._replay_consumer(key.group_id, record)

    def load(self, key: bytes, value: bytes | None, producer: ProducerIdAndEpoch | None) -> bool:
        if producer is None and value is not None and self.offsets.load(key, value):
            return True
        record = self.decode(key, value)
        if record is not None:
            self.replay(record, producer)
        return record is not None

    def _replay_offset(self, key: OffsetCommitKey, value: Message | None, producer: ProducerIdAndEpoch | None) -> None:
        """Offsets that belong to no group make one, which has no record of its own."""
        assert value is None or isinstance(value, OffsetCommitValue)
        if value is not None and key.group not in self._groups:
            self._make_group_of_offsets(key.group)
        self.offsets.replay(key, value, None if producer is None else producer.producer_id)

    def _make_group_of_offsets(self, group_id: str) -> None:
        self._groups[group_id] = ClassicGroup(group_id, self.surroundings.settings)

    def _replay_classic(self, group_id: str, value: Message | None) -> None:
        known = self._groups.get(group_id)
        if value is None:
            if isinstance(known, ClassicGroup):
                known.replay_tombstone()
                del self._groups[group_id]
            return
        assert isinstance(value, GroupMetadataValue)
        group = self._coming.pop(group_id, known)
        if isinstance(group, ClassicGroup) and not self._is_loading:
            was_rebalancing = group.state is ClassicState.COMPLETING_REBALANCE
            group.replay(value)
            self.counts.classic_rebalances += was_rebalancing and group.state is ClassicState.STABLE
        else:
            group = ClassicGroup.restored(group_id, self.surroundings.settings, value)
        self._groups[group_id] = group

    def _replay_consumer(self, group_id: str, record: StoredRecord) -> None:
        group = self._groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            if record.value is None:
                return
            group = self._groups[group_id] = ConsumerGroup(group_id, self.surroundings)
        group.replay(record)
        if isinstance(record.key, ConsumerGroupMetadataKey) and record.value is not None and not self._is_loading:
            self.counts.consumer_rebalances += 1
        if group.is_gone:
            del self._groups[group_id]

    def replay_marker(self, producer: ProducerIdAndEpoch, *, committed: bool) -> None:
        self.offsets.replay_marker(producer.producer_id, committed=committed)

    def loaded(self, now: Now) -> Decision:
        self._is_loading = False
        self.offsets.loaded()
        for group_id in self.offsets.groups() - self._groups.keys():
            self._make_group_of_offsets(group_id)
        self._resuming.extend(self._groups)
        decision = self._resume_groups(now)
        interval_ms = self.surroundings.settings.offsets_retention_check_interval_ms
        decision.timers.append(Timer(SWEEP, now.steady_ms + interval_ms))
        return decision

    def _resume_groups(self, now: Now) -> Decision:
        """A slice of the groups that were loaded. They may have been asked since, and members have been heard from,
        whose sessions then begin once more; a group that has more to decide than that is the last of its slice.
        """
        groups, decision = self._resuming, Decision()
        looked_at = 0
        while groups and looked_at < LOOKED_AT_AT_ONCE and not decision.records and decision.if_refused is None:
            group = self._groups.get(groups.popleft())
            looked_at += 1
            if isinstance(group, ClassicGroup):
                looked_at += len(group.roster)
                classic_rebalance.resume(group, now, decision)
            elif group is not None:
                looked_at += len(group.state.members)
                decision.timers += consumer_departures.loaded(group, now).timers
        if groups:
            decision.timers.append(Timer(RESUME, now.steady_ms))
        return decision

    # -- time ----------------------------------------------------------------------------------------------------------

    def timer_fired(self, key: Hashable, now: Now) -> Decision:
        if key == SWEEP:
            return self._sweep(now)
        if key == FORGET_TOPICS:
            return self._forget_topics(now)
        if key == RESUME:
            return self._resume_groups(now)
        assert isinstance(key, GroupTimer)
        group = self._groups.get(key.group_id)
        if group is None:
            return Decision()
        if isinstance(group, ConsumerGroup):
            return consumer_departures.timer_fired(group, key, now)
        if key.name in (DOWNGRADED, DOWNGRADED_AND_REBALANCES):
            decision = Decision()
            classic_rebalance.resume(group, now, decision)
            if key.name == DOWNGRADED_AND_REBALANCES:
                reason = "the group was a consumer group"
                classic_rebalance.maybe_prepare_rebalance(group, reason, now, decision)
            return decision
        return classic_rebalance.timer_fired(group, key, now)

    def _sweep(self, now: Now) -> Decision:
        """Forget what has expired, and groups with nobody in them that have nothing left: a slice of the round."""
        groups = self._sweeping
        if not groups:
            groups.begin(self._groups)
        decision = Decision(if_refused=self._sweep_refused)
        looked_at = 0
        while groups and looked_at < LOOKED_AT_AT_ONCE and len(decision.records) < FORGOTTEN_AT_ONCE:
            group_id, pieces = groups.take()
            group = self._groups.get(group_id)
            if group is not None:
                pieces = self.offsets.pieces_of(group_id) if pieces is None else pieces
                looked_at += 1 + self._sweep_group(group, pieces, decision, now)
                if pieces:
                    break  # what is left of a group is seen when these tombstones are in the log
        pause_ms = 0 if groups else self.surroundings.settings.offsets_retention_check_interval_ms
        decision.timers.append(Timer(SWEEP, now.steady_ms + pause_ms))
        return decision

    def _sweep_refused(self, code: ErrorCode, now: Now) -> Decision:
        """What has expired is found again in the next round, and not before: a log that takes nothing is left alone."""
        self._sweeping.clear()
        interval_ms = self.surroundings.settings.offsets_retention_check_interval_ms
        return Decision(timers=[Timer(SWEEP, now.steady_ms + interval_ms)])

    def _sweep_group(self, group: AnyGroup, pieces: list[Piece], decision: Decision, now: Now) -> int:
        """How many offsets were looked at."""
        expired, nothing_left, looked_at = self.offsets.expire(
            group, pieces, now.believed_ms, at_most=FORGOTTEN_AT_ONCE
        )
        decision.records += expired
        self.counts.offset_expirations += len(expired)
        if pieces:
            self._sweeping.put_back(group.group_id, pieces)
        elif nothing_left and group.is_empty and not _is_awaited(group):
            decision.records += group.tombstones()
        return looked_at


def _is_awaited(group: AnyGroup) -> bool:
    """Whether somebody was given a member id a moment ago and is to come again with it."""
    return isinstance(group, ClassicGroup) and bool(group.roster.pending)


if TYPE_CHECKING:
    _is_a_shard: type[Shard] = GroupShard
