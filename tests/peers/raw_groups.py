"""Members of groups in single steps, and the commits of groups without members; no retry is hidden.

member = RawMember(client, "readers", session_timeout_ms=6000)
member.join()                              JoinGroup and SyncGroup, as the only member
assert member.heartbeat() == ErrorCode.NONE
"""

from collections.abc import Mapping
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
from kaspar.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kaspar.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from kaspar.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from tests.peers.raw_client import RawClient
from tests.peers.raw_transactions import GROUP, find_coordinator, until_settled

NAMES_TOPICS = 9  # the last version of OffsetCommit and OffsetFetch that says topics by name
NOWHERE = -1
_PROTOCOL = "range"


@dataclass
class RawMember:
    """Of a classic group, and the only one in it."""

    client: RawClient
    group: str
    session_timeout_ms: int = 6000
    member_id: str = ""
    generation: int = -1

    def join(self) -> None:
        """Until it has its assignment: nothing."""
        find_coordinator(self.client, self.group, GROUP)
        answer = self._ask_to_join()
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            answer = self._ask_to_join()
        assert answer.error_code == ErrorCode.NONE
        assert answer.leader == answer.member_id, "there is another member"
        self.generation = answer.generation_id
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
class RawConsumerMember:
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
        answer = until_settled(lambda: self.client.call(request, ConsumerGroupHeartbeatResponse))
        if answer.error_code == ErrorCode.NONE:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.held = tuple(
                    RequestTopicPartitions(topic_id=each.topic_id, partitions=each.partitions)
                    for each in answer.assignment.topic_partitions
                )
        return answer.error_code


def commit(client: RawClient, group: str, topic: str, offsets: Mapping[int, int]) -> int:
    """Commit for a group without members; the first error code, or 0."""
    partitions = tuple(
        OffsetCommitRequestPartition(partition_index=number, committed_offset=offset, committed_metadata=None)
        for number, offset in offsets.items()
    )
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=(OffsetCommitRequestTopic(name=topic, partitions=partitions),),
    )
    answer = client.call(request, OffsetCommitResponse, NAMES_TOPICS)
    codes = (each.error_code for found in answer.topics for each in found.partitions)
    return next((code for code in codes if code), ErrorCode.NONE)


def committed(
    client: RawClient, group: str, topic: str, *partitions: int, stable: bool = True
) -> tuple[int, dict[int, int]]:
    """The first error code, or 0, and the offsets that came with it: -1 where there is none."""
    wanted = OffsetFetchRequestTopics(name=topic, partition_indexes=partitions)
    asked = OffsetFetchRequestGroup(group_id=group, member_id=None, topics=(wanted,))
    request = OffsetFetchRequest(groups=(asked,), require_stable=stable)
    found = client.call(request, OffsetFetchResponse, NAMES_TOPICS).groups[0]
    if found.error_code:
        return found.error_code, {}
    each_partition = found.topics[0].partitions
    code = next((each.error_code for each in each_partition if each.error_code), ErrorCode.NONE)
    return code, {each.partition_index: each.committed_offset for each in each_partition}
