"""Describes the quorum of controllers that stores the metadata (KIP-595), and changes its voters (KIP-853)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple
from uuid import UUID

from kaspar.client.admin.session import Admin, refuse
from kaspar.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse, Listener
from kaspar.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    ReplicaState,
    RequestPartitionData,
    RequestTopicData,
)
from kaspar.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse

_TOPIC: Final = "__cluster_metadata"
_PARTITION: Final = 0
_NO_TIME: Final = -1


class Endpoint(NamedTuple):
    listener: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class QuorumReplica:
    replica_id: int
    directory_id: UUID
    """Zero if it is unknown."""
    log_end_offset: int
    last_fetch_timestamp: int | None
    last_caught_up_timestamp: int | None
    endpoints: tuple[Endpoint, ...]


@dataclass(frozen=True, slots=True)
class QuorumInfo:
    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]


def describe_quorum(admin: Admin) -> QuorumInfo:
    """Describe the quorum. Raises Refused."""
    asked = RequestTopicData(topic_name=_TOPIC, partitions=(RequestPartitionData(partition_index=_PARTITION),))
    response = admin.ask_any(
        "describeMetadataQuorum", DescribeQuorumRequest(topics=(asked,)), DescribeQuorumResponse, at_controllers=True
    )
    refuse(response.error_code, response.error_message)
    partition = response.topics[0].partitions[0]
    refuse(partition.error_code, partition.error_message)
    endpoints = {
        node.node_id: tuple(Endpoint(each.name, each.host, each.port) for each in node.listeners)
        for node in response.nodes
    }

    def replicas(states: Iterable[ReplicaState]) -> tuple[QuorumReplica, ...]:
        return tuple(
            QuorumReplica(
                each.replica_id,
                each.replica_directory_id,
                each.log_end_offset,
                _time(each.last_fetch_timestamp),
                _time(each.last_caught_up_timestamp),
                endpoints.get(each.replica_id, ()),
            )
            for each in states
        )

    return QuorumInfo(
        partition.leader_id,
        partition.leader_epoch,
        partition.high_watermark,
        replicas(partition.current_voters),
        replicas(partition.observers),
    )


def _time(timestamp_ms: int) -> int | None:
    return None if timestamp_ms == _NO_TIME else timestamp_ms


def add_voter(admin: Admin, voter_id: int, directory_id: UUID, endpoints: Sequence[Endpoint]) -> None:
    """Add a voter. Raises Refused, or UnsupportedByPeer, because clusters of Kaspar have no quorum."""
    request = AddRaftVoterRequest(
        cluster_id=None,
        timeout_ms=admin.timeout_ms,
        voter_id=voter_id,
        voter_directory_id=directory_id,
        listeners=tuple(Listener(name=each.listener, host=each.host, port=each.port) for each in endpoints),
    )
    response = admin.ask_any("addRaftVoter", request, AddRaftVoterResponse, at_controllers=True)
    refuse(response.error_code, response.error_message)


def remove_voter(admin: Admin, voter_id: int, directory_id: UUID) -> None:
    """Remove a voter. Raises Refused, or UnsupportedByPeer, because clusters of Kaspar have no quorum."""
    request = RemoveRaftVoterRequest(cluster_id=None, voter_id=voter_id, voter_directory_id=directory_id)
    response = admin.ask_any("removeRaftVoter", request, RemoveRaftVoterResponse, at_controllers=True)
    refuse(response.error_code, response.error_message)
