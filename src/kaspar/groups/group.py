"""The interface of a group to its shard, whatever its kind: classic or consumer today, share and streams groups later.

The group makes the decisions. If it cannot do something, or a member may not do it, it raises `Refused` with Kafka's
error code and changes nothing.
"""

import enum
import uuid
from collections.abc import Callable, Collection
from typing import NamedTuple, Protocol, TypeAlias

from kaspar.base.errors import ErrorCode, Refused
from kaspar.coordination import Decision, Now, StoredRecord, Ticket
from kaspar.protocol.messages.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from kaspar.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kaspar.protocol.messages.describe_groups import DescribedGroup
from kaspar.protocol.messages.heartbeat import HeartbeatRequest
from kaspar.protocol.messages.join_group import JoinGroupRequest
from kaspar.protocol.messages.leave_group import LeaveGroupRequest
from kaspar.protocol.messages.sync_group import SyncGroupRequest

CONSUMER_PROTOCOL_TYPE = "consumer"


class GroupKind(enum.Enum):
    """The value is Kafka's name of the group type, as in ListGroups."""

    CLASSIC = "classic"
    CONSUMER = "consumer"


class GroupClient(NamedTuple):
    """The client that sent a request, and the version of the request. `new_id` is a fresh random id, from which a
    member id is made if the client needs one. `describes` says whether the client may describe a topic; None: all of
    them.
    """

    client_id: str
    host: str
    api_version: int
    new_id: uuid.UUID
    describes: Callable[[str], bool] | None = None


class Committer(Protocol):
    """The sender of an offset commit, and its group. Without a member id it is an admin tool, or a consumer that
    assigns its partitions itself.
    """

    @property
    def group_id(self) -> str: ...

    @property
    def member_id(self) -> str: ...

    @property
    def instance_id(self) -> str | None: ...

    @property
    def generation_or_epoch(self) -> int: ...

    @property
    def api_version(self) -> int: ...


PartitionCheck: TypeAlias = Callable[[str, uuid.UUID, int], None]
"""Raises Refused if the member may not commit an offset of this partition (topic, topic id, partition)."""


class GroupTimer(NamedTuple):
    """The key of a group's timer. `member_id` is empty for a timer of the whole group."""

    group_id: str
    name: str
    member_id: str = ""


class OffsetsOwner(Protocol):
    """What the committed offsets of a group need to know about it."""

    @property
    def group_id(self) -> str: ...

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member reads this topic, or may read it, as far as the group can tell."""
        ...

    def offsets_expire_from(self, topic: str, committed_at_ms: int) -> int | None:
        """The time (wall clock) from which the retention of a committed offset counts; None while it is in use."""
        ...


class Group(OffsetsOwner, Protocol):
    @property
    def kind(self) -> GroupKind: ...

    @property
    def state_name(self) -> str:
        """Kafka's name of the state, as in ListGroups: "Stable"."""
        ...

    @property
    def is_empty(self) -> bool:
        """Whether it has no members."""
        ...

    @property
    def is_awaited(self) -> bool:
        """Whether a client has been given a member id and is about to join with it (KIP-394)."""
        ...

    @property
    def yields_to_classic(self) -> bool:
        """Whether a member that joins with the classic protocol replaces the group by a classic one."""
        ...

    @property
    def protocol_type(self) -> str | None:
        """None until a member has joined: the group only has committed offsets."""
        ...

    # -- the classic protocol ------------------------------------------------------------------------------------------

    def join(self, request: JoinGroupRequest, client: GroupClient, ticket: Ticket, now: Now) -> Decision: ...

    def sync(self, request: SyncGroupRequest, ticket: Ticket, now: Now) -> Decision: ...

    def heartbeat(self, request: HeartbeatRequest, now: Now) -> Decision: ...

    def leave(self, request: LeaveGroupRequest, now: Now) -> Decision: ...

    def describe(self) -> DescribedGroup:
        """The response for DescribeGroups, which supports only classic groups."""
        ...

    # -- the consumer protocol (KIP-848) -------------------------------------------------------------------------------

    def consumer_heartbeat(self, request: ConsumerGroupHeartbeatRequest, client: GroupClient, now: Now) -> Decision: ...

    def consumer_describe(self) -> DescribedConsumerGroup:
        """The response for ConsumerGroupDescribe, which supports only consumer groups."""
        ...

    # -- offsets -------------------------------------------------------------------------------------------------------

    def check_offset_commit(self, committer: Committer, *, transactional: bool) -> PartitionCheck | None:
        """Refused if offsets may not be committed or added to a transaction now. A check for each partition, if any."""
        ...

    def offsets_committed(self, member_id: str, now: Now) -> None:
        """Called when this member commits offsets outside a transaction."""
        ...

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None: ...

    def check_offset_delete(self) -> None: ...

    # -- lifecycle -----------------------------------------------------------------------------------------------------

    def resume(self, now: Now) -> Decision:
        """Begin the sessions of the members after the group has been loaded from the log."""
        ...

    @property
    def member_count(self) -> int: ...

    def timer_fired(self, timer: GroupTimer, now: Now) -> Decision: ...

    def topics_changed(self, changed: Collection[str]) -> None:
        """Called with the names of topics that were created, deleted or changed."""
        ...

    def check_delete(self) -> None:
        """Refused if the group cannot be deleted because it has members."""
        ...

    def tombstones(self) -> list[StoredRecord]:
        """The records that delete the group, but not its offsets."""
        ...


def group_not_found(group_id: str) -> Refused:
    return Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")


def not_of_kind(group_id: str, kind: GroupKind) -> Refused:
    return Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a {kind.value} group.")


def unknown_member(group_id: str, member_id: str) -> Refused:
    return Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group_id}.")


def fenced_instance(instance_id: str, member_id: str, current_id: str) -> Refused:
    return Refused(
        ErrorCode.FENCED_INSTANCE_ID,
        f"Static member {member_id} with instance id {instance_id} was fenced by member {current_id}.",
    )


def group_not_empty(group_id: str) -> Refused:
    return Refused(ErrorCode.NON_EMPTY_GROUP, f"Group {group_id} is not empty.")
