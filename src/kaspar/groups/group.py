"""What both kinds of group have in common: what a shard and the committed offsets ask of a group, whichever it is.

A group answers for itself: whether a member may commit or fetch offsets in its name, whether it may be deleted, and
from when on its offsets may be forgotten. A check that fails raises `Refused` with Kafka's code and changes nothing.
"""

import enum
import uuid
from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias

from kaspar.base.errors import ErrorCode, Refused

CONSUMER_PROTOCOL_TYPE = "consumer"


class GroupKind(enum.Enum):
    """The value is Kafka's word for it, as ListGroups shows it."""

    CLASSIC = "classic"
    CONSUMER = "consumer"


class Client(NamedTuple):
    """Who asks, and at which version. `new_id` is fresh with each request, for the case that a member id is made."""

    client_id: str
    host: str
    api_version: int
    new_id: uuid.UUID


PartitionCheck: TypeAlias = Callable[[str, uuid.UUID, int], None]
"""Whether the member that commits may do so for this partition (topic, topic id, partition): Refused if not."""


class GroupTimer(NamedTuple):
    """The key of a group's timer: `name` says what for, `member_id` is empty if it is the whole group's."""

    group_id: str
    name: str
    member_id: str = ""


class Group(Protocol):
    """A group as the offsets and the shard see it."""

    @property
    def group_id(self) -> str: ...

    @property
    def kind(self) -> GroupKind: ...

    @property
    def state_name(self) -> str:
        """In Kafka's words, as ListGroups shows it: "Stable"."""
        ...

    @property
    def is_empty(self) -> bool:
        """Nobody is a member."""
        ...

    @property
    def protocol_type(self) -> str | None:
        """None as long as nobody ever joined: a group that has committed offsets and nothing else."""
        ...

    def check_offset_commit(
        self,
        member_id: str,
        instance_id: str | None,
        generation_or_epoch: int,
        *,
        transactional: bool,
        api_version: int,
    ) -> PartitionCheck | None:
        """Whether this member may commit offsets now, or add them to a transaction; then, for which partitions. None:
        for all.
        """
        ...

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None: ...

    def check_offset_delete(self) -> None: ...

    def check_delete(self) -> None:
        """Whether the group may be deleted: nobody is in it."""
        ...

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member reads this topic, or might, as far as the group can tell."""
        ...

    def offsets_expire_from(self, topic: str, committed_at_ms: int) -> int | None:
        """From when on (wall clock) the retention of a committed offset counts; None as long as it is in use."""
        ...


def group_not_found(group_id: str) -> Refused:
    return Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")


def unknown_member(group_id: str, member_id: str) -> Refused:
    return Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group_id}.")


def fenced_instance(group_id: str, instance_id: str, member_id: str) -> Refused:
    return Refused(
        ErrorCode.FENCED_INSTANCE_ID,
        f"Static member {instance_id} of group {group_id} is no longer the one with id {member_id}.",
    )


def group_not_empty(group_id: str) -> Refused:
    return Refused(ErrorCode.NON_EMPTY_GROUP, f"Group {group_id} is not empty.")
