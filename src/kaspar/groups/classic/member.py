"""A member of a classic group: what it sent when it joined, its assignment, and its requests that wait."""

from collections.abc import Iterable

from kaspar.coordination import Ticket
from kaspar.groups.records import MemberMetadata
from kaspar.protocol.messages.describe_groups import DescribedGroupMember
from kaspar.protocol.messages.join_group import JoinGroupRequestProtocol, JoinGroupResponseMember

NO_ASSIGNMENT = b""


def protocols_by_name(protocols: Iterable[JoinGroupRequestProtocol]) -> dict[str, bytes]:
    """Metadata by protocol name, in order of preference. The first of two protocols with the same name counts."""
    by_name: dict[str, bytes] = {}
    for protocol in protocols:
        by_name.setdefault(protocol.name, protocol.metadata)
    return by_name


class ClassicMember:
    """A member whose session ends at `deadline_ms` (steady clock). A heartbeat only moves the deadline: the timer fires
    at `timer_at_ms`, and is set again if that was too early.
    """

    __slots__ = (
        "_last_joined",
        "_last_stored",
        "assignment",
        "awaiting_join",
        "awaiting_sync",
        "client_host",
        "client_id",
        "deadline_ms",
        "instance_id",
        "is_new",
        "member_id",
        "protocol_type",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "timer_at_ms",
    )

    def __init__(
        self,
        member_id: str,
        *,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocol_type: str,
        protocols: dict[str, bytes],
        assignment: bytes = NO_ASSIGNMENT,
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocol_type = protocol_type
        self.protocols = protocols
        self.assignment = assignment
        self._last_joined: JoinGroupResponseMember | None = None
        self._last_stored: MemberMetadata | None = None
        self.is_new = False
        """It has not seen its first generation yet, and cannot send heartbeats before that."""
        self.awaiting_join: Ticket | None = None
        self.awaiting_sync: Ticket | None = None
        self.deadline_ms = 0
        self.timer_at_ms: int | None = None

    @classmethod
    def restored(cls, stored: MemberMetadata, protocol_type: str, protocol_name: str | None) -> "ClassicMember":
        """The member as stored in the log. Of its protocols only the one in use is known."""
        return cls(
            stored.member_id,
            instance_id=stored.group_instance_id,
            client_id=stored.client_id,
            client_host=stored.client_host,
            rebalance_timeout_ms=stored.session_timeout if stored.rebalance_timeout == -1 else stored.rebalance_timeout,
            session_timeout_ms=stored.session_timeout,
            protocol_type=protocol_type,
            protocols={protocol_name or "": stored.subscription},
            assignment=stored.assignment,
        )

    def replaced_by(self, member_id: str) -> "ClassicMember":
        """A copy of this static member with another id. Requests that wait stay with the old member."""
        return ClassicMember(
            member_id,
            instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            session_timeout_ms=self.session_timeout_ms,
            protocol_type=self.protocol_type,
            protocols=self.protocols,
            assignment=self.assignment,
        )

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    @property
    def is_heard_from(self) -> bool:
        """Whether its session continues because a request of it waits. Not for a new member: its client may be gone."""
        return not self.is_new and (self.awaiting_join is not None or self.awaiting_sync is not None)

    def has_same_protocols(self, protocols: dict[str, bytes]) -> bool:
        return list(self.protocols.items()) == list(protocols.items())

    # Both return the previous object if nothing has changed, as is the case for most members of a large group.

    def as_joined(self, protocol_name: str) -> JoinGroupResponseMember:
        metadata = self.protocols[protocol_name]
        last = self._last_joined
        if last is None or last.metadata != metadata:
            self._last_joined = last = JoinGroupResponseMember(
                member_id=self.member_id, group_instance_id=self.instance_id, metadata=metadata
            )
        return last

    def as_stored(self, protocol_name: str | None, assignment: bytes) -> MemberMetadata:
        assert protocol_name is not None, "a group with members has settled on a protocol"
        subscription = self.protocols[protocol_name]
        last = self._last_stored
        if (
            last is not None
            and last.assignment == assignment
            and last.subscription == subscription
            and last.session_timeout == self.session_timeout_ms
            and last.rebalance_timeout == self.rebalance_timeout_ms
            and last.client_id == self.client_id
            and last.client_host == self.client_host
        ):
            return last
        self._last_stored = last = MemberMetadata(
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout=self.rebalance_timeout_ms,
            session_timeout=self.session_timeout_ms,
            subscription=subscription,
            assignment=assignment,
        )
        return last

    def described(self, protocol_name: str | None) -> DescribedGroupMember:
        """The member for DescribeGroups, with its metadata and assignment if the group has settled on a protocol."""
        return DescribedGroupMember(
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            member_metadata=b"" if protocol_name is None else self.protocols[protocol_name],
            member_assignment=NO_ASSIGNMENT if protocol_name is None else self.assignment,
        )
