"""Offsets of many partitions at once, against a scripted broker that leads and coordinates all of them."""

import errno
import uuid
from collections.abc import Iterator

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import TopicPartition
from kaspar.client import Client
from kaspar.client.cluster import LATEST_TIMESTAMP
from kaspar.client.offsets import CommittedOffset, ListedOffset, commit_offsets, fetch_committed, list_offsets
from kaspar.protocol.headers import RequestHeader
from kaspar.protocol.messages import find_coordinator, metadata, offset_commit, offset_fetch
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
        self.metadata: dict[int, str | None] = {}
        self.group_refusals: list[ErrorCode] = []
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
            case offset_fetch.OffsetFetchRequest():
                return self._fetch(request)
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
                self.metadata[each.partition_index] = each.committed_metadata
            responses.append(
                offset_commit.OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
            )
        return offset_commit.OffsetCommitResponseTopic(
            name=topic.name, topic_id=topic.topic_id, partitions=tuple(responses)
        )

    def _fetch(self, request: offset_fetch.OffsetFetchRequest) -> offset_fetch.OffsetFetchResponse:
        (group,) = request.groups
        assert group.topics is None, "all of them"
        code = self.group_refusals.pop(0) if self.group_refusals else ErrorCode.NONE
        partitions = tuple(
            offset_fetch.OffsetFetchResponsePartitions(
                partition_index=partition,
                committed_offset=offset,
                metadata=self.metadata[partition],
                error_code=self._refusal(partition),
            )
            for partition, offset in self.committed.items()
        )
        topics = (offset_fetch.OffsetFetchResponseTopics(name="t", partitions=partitions),)
        found = offset_fetch.OffsetFetchResponseGroup(
            group_id=group.group_id, error_code=code, topics=topics if code is ErrorCode.NONE and partitions else ()
        )
        return offset_fetch.OffsetFetchResponse(groups=(found,))


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
    with pytest.raises(Refused, match="offsets of t-1"):
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


def test_what_a_group_has_committed_is_read_back_with_its_metadata(client: Client, script: OneTopic) -> None:
    assert fetch_committed(client, "g") == {}
    commit_offsets(client, "g", {T0: 5}, metadata="run 7")
    commit_offsets(client, "g", {T1: 6})
    assert fetch_committed(client, "g") == {T0: CommittedOffset(5, "run 7"), T1: CommittedOffset(6, "")}


def test_partitions_without_a_committed_offset_and_null_metadata_are_nothing(client: Client, script: OneTopic) -> None:
    script.committed, script.metadata = {0: -1, 1: 4}, {0: None, 1: None}
    assert fetch_committed(client, "g") == {T1: CommittedOffset(4, "")}


def test_a_coordinator_that_is_loading_is_asked_again(client: Client, script: OneTopic) -> None:
    script.committed, script.metadata = {0: 5}, {0: ""}
    script.group_refusals = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
    assert fetch_committed(client, "g") == {T0: CommittedOffset(5, "")}


def test_errors_of_the_group_and_of_a_partition_are_raised(client: Client, script: OneTopic) -> None:
    script.group_refusals = [ErrorCode.GROUP_AUTHORIZATION_FAILED]
    with pytest.raises(Refused, match="offsets of group 'g': GROUP_AUTHORIZATION_FAILED"):
        fetch_committed(client, "g")
    script.committed, script.metadata = {1: 5}, {1: ""}
    script.refusals = [ErrorCode.UNSTABLE_OFFSET_COMMIT]
    with pytest.raises(Refused, match="UNSTABLE_OFFSET_COMMIT"):
        fetch_committed(client, "g")
