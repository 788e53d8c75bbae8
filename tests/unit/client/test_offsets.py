"""Offsets of many partitions at once, against a scripted broker that leads and coordinates all of them."""

import errno
import uuid
from collections.abc import Iterator

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import TopicPartition
from kaspar.client import Client
from kaspar.client.cluster import LATEST_TIMESTAMP
from kaspar.client.offsets import ListedOffset, commit_offsets, list_offsets
from kaspar.protocol.headers import RequestHeader
from kaspar.protocol.messages import find_coordinator, metadata, offset_commit
from kaspar.protocol.messages import list_offsets as listing
from kaspar.protocol.messages.api_versions import ApiVersionsRequest
from kaspar.protocol.schema import Message
from tests.unit.client.scripted import ScriptedBroker, api_versions

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
TOPIC_ID = uuid.UUID(int=7)


class OneTopic:
    """Topic "t" with two partitions. `refusals` are the next error codes of partition 1."""

    def __init__(self) -> None:
        self.port = 0
        self.refusals: list[ErrorCode] = []
        self.committed: dict[int, int] = {}
        self.requests: list[Message] = []

    def __call__(self, header: RequestHeader, request: Message) -> Message | bytes | None:
        self.requests.append(request)
        match request:
            case ApiVersionsRequest():
                return api_versions()
            case metadata.MetadataRequest():
                return self._metadata(request)
            case listing.ListOffsetsRequest():
                return listing.ListOffsetsResponse(topics=tuple(self._listed(each) for each in request.topics))
            case find_coordinator.FindCoordinatorRequest():
                there = find_coordinator.Coordinator(
                    key=request.coordinator_keys[0], node_id=1, host="127.0.0.1", port=self.port
                )
                return find_coordinator.FindCoordinatorResponse(coordinators=(there,))
            case offset_commit.OffsetCommitRequest():
                return offset_commit.OffsetCommitResponse(topics=tuple(self._commit(each) for each in request.topics))
        raise AssertionError(f"not scripted: {request}")

    def _metadata(self, request: metadata.MetadataRequest) -> metadata.MetadataResponse:
        partitions = tuple(metadata.MetadataResponsePartition(partition_index=n, leader_id=1) for n in range(2))
        topics = tuple(
            metadata.MetadataResponseTopic(name="t", topic_id=TOPIC_ID, partitions=partitions)
            if each.name == "t"
            else metadata.MetadataResponseTopic(
                name=each.name, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, partitions=()
            )
            for each in request.topics or ()
        )
        broker = metadata.MetadataResponseBroker(node_id=1, host="127.0.0.1", port=self.port)
        return metadata.MetadataResponse(brokers=(broker,), topics=topics)

    def _refusal(self, partition: int) -> ErrorCode:
        return self.refusals.pop(0) if partition == 1 and self.refusals else ErrorCode.NONE

    def _listed(self, topic: listing.ListOffsetsTopic) -> listing.ListOffsetsTopicResponse:
        responses = tuple(
            listing.ListOffsetsPartitionResponse(
                partition_index=each.partition_index,
                error_code=self._refusal(each.partition_index),
                offset=10 + each.partition_index,
                leader_epoch=3,
            )
            for each in topic.partitions
        )
        return listing.ListOffsetsTopicResponse(name=topic.name, partitions=responses)

    def _commit(self, topic: offset_commit.OffsetCommitRequestTopic) -> offset_commit.OffsetCommitResponseTopic:
        responses = []
        for each in topic.partitions:
            code = self._refusal(each.partition_index)
            if code == ErrorCode.NONE:
                self.committed[each.partition_index] = each.committed_offset
            responses.append(
                offset_commit.OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
            )
        return offset_commit.OffsetCommitResponseTopic(
            name=topic.name, topic_id=topic.topic_id, partitions=tuple(responses)
        )


@pytest.fixture
def script() -> OneTopic:
    return OneTopic()


@pytest.fixture
def client(script: OneTopic) -> Iterator[Client]:
    with ScriptedBroker(script) as broker:
        script.port = broker.port
        with Client(f"127.0.0.1:{broker.port}", timeout_s=5) as client:
            yield client


def test_leader_gets_one_request_for_all_of_its_partitions(client: Client, script: OneTopic) -> None:
    listed = list_offsets(client, {T0: LATEST_TIMESTAMP, T1: LATEST_TIMESTAMP})
    assert listed == {T0: ListedOffset(10, -1, 3), T1: ListedOffset(11, -1, 3)}
    assert sum(isinstance(each, listing.ListOffsetsRequest) for each in script.requests) == 1


def test_only_refused_partitions_are_requested_again(client: Client, script: OneTopic) -> None:
    script.refusals = [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert list_offsets(client, {T0: 1, T1: 1}).keys() == {T0, T1}
    asked = [each for each in script.requests if isinstance(each, listing.ListOffsetsRequest)]
    assert [[part.partition_index for part in each.topics[0].partitions] for each in asked] == [[0, 1], [1]]


def test_a_leader_whose_host_is_gone_is_looked_for_again(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    failures = [OSError(errno.EHOSTUNREACH, "No route to host")]
    ask = Client.request_broker

    def ask_if_there_is_a_way(self: Client, *question: object) -> Message:
        if failures:
            raise failures.pop()
        return ask(self, *question)  # type: ignore[arg-type]

    monkeypatch.setattr(Client, "request_broker", ask_if_there_is_a_way)
    assert list_offsets(client, {T0: 1, T1: 1}).keys() == {T0, T1}


def test_a_partition_that_is_gone_is_refused_at_once(client: Client, script: OneTopic) -> None:
    script.refusals = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    with pytest.raises(Refused, match="offset of t-1"):
        list_offsets(client, {T0: 1, T1: 1})
    with pytest.raises(Refused):
        list_offsets(client, {TopicPartition("other", 0): 1})


def test_a_group_has_what_was_committed(client: Client, script: OneTopic) -> None:
    assert commit_offsets(client, "g", {T0: 5}) == {}
    assert script.committed == {0: 5}


def test_commit_returns_the_errors_of_partitions(client: Client, script: OneTopic) -> None:
    script.refusals = [ErrorCode.UNKNOWN_MEMBER_ID]
    other = TopicPartition("other", 0)
    refused = commit_offsets(client, "g", {T0: 5, T1: 6, other: 7})
    assert refused == {T1: ErrorCode.UNKNOWN_MEMBER_ID, other: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert script.committed == {0: 5}


def test_a_commit_names_the_topic_that_was_read(client: Client, script: OneTopic) -> None:
    """By its id, so that none that took its place gets the offset."""
    commit_offsets(client, "g", {T0: 5}, topic_ids={"t": uuid.UUID(int=9)})
    (request,) = (each for each in script.requests if isinstance(each, offset_commit.OffsetCommitRequest))
    assert request.topics[0].topic_id == uuid.UUID(int=9)
