"""Members of classic groups in single steps: a test decides which member joins, when, and at which version; no retry is
hidden.

    one, two = RawMember(port, "readers"), RawMember(port, "readers")
    one.ask_to_join()
    two.ask_to_join()
    one.joined(), two.joined()

Each member has a connection of its own, for a JoinGroup or SyncGroup may have to wait for the others.
"""

from collections.abc import Mapping
from types import TracebackType
from typing import Self, TypeVar

from kaspar.base.errors import ErrorCode
from kaspar.protocol.api_keys import ApiKey
from kaspar.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kaspar.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from kaspar.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kaspar.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from kaspar.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from kaspar.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from kaspar.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from kaspar.protocol.schema import Message
from tests.peers.raw_client import RawClient, request_frame

JOIN, SYNC, HEARTBEAT, LEAVE = 9, 5, 4, 5
FIRST_JOIN_WITH_MEMBER_IDS = 4
FIRST_JOIN_WITH_INSTANCES = 5
FIRST_SYNC_WITH_PROTOCOL = 5
FIRST_LEAVE_WITH_SEVERAL = 3
NO_TOPICS = b"\x00\x00" + b"\x00\x00\x00\x00" + b"\xff\xff\xff\xff"
"""A subscription to nothing: version 0, no topics, no data of its own. Kafka's rebalances end at one it cannot read."""
SESSION_MS = 10_000
REBALANCE_MS = 20_000

M = TypeVar("M", bound=Message)


class RawMember:
    def __init__(
        self,
        port: int,
        group_id: str,
        *,
        instance_id: str | None = None,
        protocols: Mapping[str, bytes] | None = None,
        protocol_type: str = "consumer",
        session_timeout_ms: int = SESSION_MS,
        rebalance_timeout_ms: int = REBALANCE_MS,
    ) -> None:
        self.client = RawClient(port)
        self.group_id = group_id
        self.instance_id = instance_id
        self.protocols = dict(protocols or {"range": NO_TOPICS})
        self.protocol_type = protocol_type
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.member_id = ""
        self.generation_id = -1
        self.protocol_name: str | None = None
        self._waits_for: list[tuple[int, int]] = []
        self._sent = 0

    def close(self) -> None:
        self.client.close()

    def connect_again(self, port: int) -> None:
        """The broker was away. What this member waited for does not come any more."""
        self.close()
        self.client = RawClient(port)
        self._waits_for.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _send(self, request: Message, version: int) -> None:
        self._sent += 1
        self._waits_for.append((version, self._sent))
        self.client.send(request_frame(request, version, correlation_id=self._sent))

    def _response(self, key: ApiKey, kind: type[M]) -> M:
        version, correlation_id = self._waits_for.pop(0)
        response = self.client.response_to(key, version, correlation_id)
        assert isinstance(response, kind)
        return response

    # -- joining -------------------------------------------------------------------------------------------------------

    def ask_to_join(self, version: int = JOIN) -> None:
        """The response may take long. A caller that needs a member id asks for one first."""
        needs_id = version >= FIRST_JOIN_WITH_MEMBER_IDS and self.instance_id is None and not self.member_id
        if needs_id:
            self.send_join(version)
            required = self.join_response()
            assert required.error_code == ErrorCode.MEMBER_ID_REQUIRED, required
            self.member_id = required.member_id
        self.send_join(version)

    def send_join(self, version: int = JOIN) -> None:
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=self.protocol_type,
            protocols=tuple(
                JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in self.protocols.items()
            ),
            reason="a test",
        )
        self._send(request, version)

    def join_response(self) -> JoinGroupResponse:
        return self._response(ApiKey.JOIN_GROUP, JoinGroupResponse)

    def joined(self) -> JoinGroupResponse:
        """The response to JoinGroup, which is not an error."""
        response = self.join_response()
        assert response.error_code == ErrorCode.NONE, ErrorCode(response.error_code)
        self.member_id, self.generation_id = response.member_id, response.generation_id
        self.protocol_name = response.protocol_name
        return response

    def join(self, version: int = JOIN) -> JoinGroupResponse:
        self.ask_to_join(version)
        return self.joined()

    # -- the rest ------------------------------------------------------------------------------------------------------

    def send_sync(self, assignments: Mapping[str, bytes] | None = None, version: int = SYNC) -> None:
        says_protocol = version >= FIRST_SYNC_WITH_PROTOCOL
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.generation_id,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=self.protocol_type if says_protocol else None,
            protocol_name=(self.protocol_name or next(iter(self.protocols))) if says_protocol else None,
            assignments=tuple(
                SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
                for member_id, assignment in (assignments or {}).items()
            ),
        )
        self._send(request, version)

    def synced(self) -> SyncGroupResponse:
        return self._response(ApiKey.SYNC_GROUP, SyncGroupResponse)

    def sync(self, assignments: Mapping[str, bytes] | None = None, version: int = SYNC) -> SyncGroupResponse:
        self.send_sync(assignments, version)
        return self.synced()

    def heartbeat(self, version: int = HEARTBEAT) -> ErrorCode:
        request = HeartbeatRequest(
            group_id=self.group_id,
            generation_id=self.generation_id,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )
        self._send(request, version)
        return ErrorCode(self._response(ApiKey.HEARTBEAT, HeartbeatResponse).error_code)

    def leave(self, version: int = LEAVE) -> ErrorCode:
        """This member's entry in the response."""
        several = version >= FIRST_LEAVE_WITH_SEVERAL
        identity = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance_id)
        request = LeaveGroupRequest(
            group_id=self.group_id,
            member_id="" if several else self.member_id,
            members=(identity,) if several else (),
        )
        self._send(request, version)
        response = self._response(ApiKey.LEAVE_GROUP, LeaveGroupResponse)
        return ErrorCode(response.members[0].error_code if several and response.members else response.error_code)


class RawGroups:
    """Groups as an admin tool sees them."""

    def __init__(self, client: RawClient) -> None:
        self._client = client

    def describe(self, group_id: str, version: int = 6, *, operations: bool = False) -> DescribedGroup:
        request = DescribeGroupsRequest(groups=(group_id,), include_authorized_operations=operations)
        (group,) = self._client.call(request, DescribeGroupsResponse, version).groups
        return group

    def state(self, group_id: str) -> str:
        return self.describe(group_id).group_state

    def listed(
        self, version: int = 5, *, states: tuple[str, ...] = (), types: tuple[str, ...] = ()
    ) -> dict[str, ListedGroup]:
        request = ListGroupsRequest(states_filter=states, types_filter=types)
        response = self._client.call(request, ListGroupsResponse, version)
        assert response.error_code == ErrorCode.NONE
        return {group.group_id: group for group in response.groups}

    def delete(self, *group_ids: str, version: int = 2) -> dict[str, ErrorCode]:
        response = self._client.call(DeleteGroupsRequest(groups_names=group_ids), DeleteGroupsResponse, version)
        return {result.group_id: ErrorCode(result.error_code) for result in response.results}

    def remove(self, group_id: str, *instances: str) -> list[ErrorCode]:
        members = tuple(MemberIdentity(member_id="", group_instance_id=each) for each in instances)
        response = self._client.call(LeaveGroupRequest(group_id=group_id, members=members), LeaveGroupResponse, LEAVE)
        return [ErrorCode(member.error_code) for member in response.members]
