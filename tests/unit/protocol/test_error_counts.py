"""Which error codes of a response are counted. tests/compat/test_error_counts.py compares all of them with Kafka's."""

from collections import defaultdict

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.broker.wiring import SERVED
from kaspar.protocol.api import response_class
from kaspar.protocol.error_counts import ErrorCounts, error_counter
from kaspar.protocol.messages.describe_log_dirs import DescribeLogDirsResponse
from kaspar.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from kaspar.protocol.messages.heartbeat import HeartbeatResponse
from kaspar.protocol.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from kaspar.protocol.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from kaspar.protocol.schema import Message

NONE, UNKNOWN = ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
NO_LEADER, NOT_HERE = ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR

_PARTITION = MetadataResponsePartition(
    error_code=NO_LEADER, partition_index=0, leader_id=-1, replica_nodes=(), isr_nodes=()
)
_METADATA = MetadataResponse(
    brokers=(),
    topics=(
        MetadataResponseTopic(name="a", partitions=(_PARTITION, _PARTITION)),
        MetadataResponseTopic(error_code=UNKNOWN, name="b", partitions=()),
    ),
)
_COMMITTED = OffsetFetchResponsePartitions(partition_index=0, committed_offset=5, metadata=None)
_OFFSETS = OffsetFetchResponse(
    groups=(
        OffsetFetchResponseGroup(group_id="a", topics=(OffsetFetchResponseTopics(partitions=(_COMMITTED,)),)),
        OffsetFetchResponseGroup(group_id="b", topics=(), error_code=NOT_HERE),
    )
)
_COORDINATOR = Coordinator(key="a", node_id=1, host="h", port=1, error_code=NOT_HERE, error_message=None)


@pytest.mark.parametrize(
    ("response", "version", "counts"),
    [
        (HeartbeatResponse(error_code=UNKNOWN), 4, {UNKNOWN: 1}),
        (_METADATA, 13, {NONE: 1, UNKNOWN: 1, NO_LEADER: 2}),  # its own code is left out, as Kafka leaves it out
        (_OFFSETS, 8, {NONE: 2, NOT_HERE: 1}),
        (OffsetFetchResponse(error_code=NOT_HERE), 7, {NOT_HERE: 1}),
        (FindCoordinatorResponse(coordinators=(_COORDINATOR, _COORDINATOR)), 6, {NOT_HERE: 2}),
        (FindCoordinatorResponse(coordinators=()), 6, {NONE: 1}),
        (DescribeLogDirsResponse(results=()), 1, {NONE: 1}),  # whose own code came with version 3
    ],
)
def test_codes_of_the_version_are_counted_at_every_depth(
    response: Message, version: int, counts: dict[int, int]
) -> None:
    counted: ErrorCounts = defaultdict(int)
    count = error_counter(type(response), version)
    assert count is not None
    count(response, counted)
    assert counted == counts


def test_every_api_that_is_served_has_codes_to_count() -> None:
    for api in SERVED.values():
        for version in range(api.first_version, api.last_version + 1):
            assert error_counter(response_class(api.key), version) is not None, (api, version)
