"""Groups of one member, of either protocol: for tests of sessions that need no other member.

member = LoneMember(client, "readers", session_timeout_ms=6000)
member.join()                              JoinGroup and SyncGroup, as the only member
assert member.heartbeat() == ErrorCode.NONE
"""

from dataclasses import dataclass
from uuid import uuid4

from kaspar.base.errors import ErrorCode
from kaspar.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    RequestTopicPartitions,
)
from kaspar.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kaspar.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from kaspar.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from tests.peers.raw_client import RawClient
from tests.peers.raw_transactions import GROUP, find_coordinator, until_settled

_PROTOCOL = "range"


@dataclass
class LoneMember:
    """Of a classic group, and the only one in it."""

    client: RawClient
    group: str
    session_timeout_ms: int = 6000
    member_id: str = ""
    generation: int = -1

    def join(self) -> None:
        """Until it has its assignment: nothing."""
        find_coordinator(self.client, self.group, GROUP)
        response = self._ask_to_join()
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
            response = self._ask_to_join()
        assert response.error_code == ErrorCode.NONE
        assert response.leader == response.member_id, "there is another member"
        self.generation = response.generation_id
        synced = self.client.call(
            SyncGroupRequest(
                group_id=self.group,
                generation_id=self.generation,
                member_id=self.member_id,
                protocol_type="consumer",
                protocol_name=_PROTOCOL,
                assignments=(SyncGroupRequestAssignment(member_id=self.member_id, assignment=b""),),
            ),
            SyncGroupResponse,
        )
        assert synced.error_code == ErrorCode.NONE

    def _ask_to_join(self) -> JoinGroupResponse:
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=60_000,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name=_PROTOCOL, metadata=b""),),
        )
        return until_settled(lambda: self.client.call(request, JoinGroupResponse))

    def heartbeat(self) -> int:
        """The error code."""
        request = HeartbeatRequest(group_id=self.group, generation_id=self.generation, member_id=self.member_id)
        return self.client.call(request, HeartbeatResponse).error_code


@dataclass
class LoneConsumerMember:
    """Of a group on the consumer protocol (KIP-848), and the only one in it."""

    client: RawClient
    group: str
    topic: str
    member_id: str = ""
    epoch: int = 0
    held: tuple[RequestTopicPartitions, ...] = ()

    def join(self) -> None:
        """Until it holds a partition."""
        find_coordinator(self.client, self.group, GROUP)
        self.member_id = str(uuid4())
        while not self.held:
            assert self.heartbeat() == ErrorCode.NONE

    def heartbeat(self) -> int:
        """The error code. What is assigned is held from then on, and the next heartbeat says so."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.epoch,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=(self.topic,),
            topic_partitions=self.held,
        )
        response = until_settled(lambda: self.client.call(request, ConsumerGroupHeartbeatResponse))
        if response.error_code == ErrorCode.NONE:
            self.epoch = response.member_epoch
            if response.assignment is not None:
                self.held = tuple(
                    RequestTopicPartitions(topic_id=each.topic_id, partitions=each.partitions)
                    for each in response.assignment.topic_partitions
                )
        return response.error_code
