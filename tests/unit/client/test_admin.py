"""The administrator's session: which calls are sent again, for how long, and what the results are."""

import uuid
from collections.abc import Iterator

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ZERO_UUID, TopicPartition
from kaspar.client.admin.configs import (
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    ResourceType,
    incremental_alter_configs,
)
from kaspar.client.admin.reassignments import alter_reassignments
from kaspar.client.admin.session import Admin, refusal
from kaspar.client.admin.topics import TopicDescription, describe_topics
from kaspar.protocol.headers import RequestHeader
from kaspar.protocol.messages import alter_partition_reassignments as reassignments
from kaspar.protocol.messages import describe_topic_partitions as descriptions
from kaspar.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from kaspar.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kaspar.protocol.schema import Message
from tests.unit.client.scripted import HANG_UP, Reply, ScriptedBroker, api_versions

FOO_0 = TopicPartition("foo", 0)


class Script:
    """A broker that is also the controller, and responds to everything else with what is next."""

    def __init__(self, *replies: Reply, without: int | None = None) -> None:
        self.asked: list[Message] = []
        self._replies: Iterator[Reply] = iter(replies)
        self._without = without
        self.port = 0

    def __call__(self, header: RequestHeader, request: Message) -> Reply:
        if isinstance(request, ApiVersionsRequest):
            return self._versions()
        if isinstance(request, MetadataRequest) and request.topics == ():
            broker = MetadataResponseBroker(node_id=1, host="127.0.0.1", port=self.port)
            return MetadataResponse(brokers=(broker,), controller_id=1, topics=())
        self.asked.append(request)
        return next(self._replies)

    def _versions(self) -> ApiVersionsResponse:
        keys: tuple[ApiVersion, ...] = api_versions().api_keys
        return ApiVersionsResponse(api_keys=tuple(each for each in keys if each.api_key != self._without))


def _reassigned(
    code: ErrorCode, *, whole: ErrorCode = ErrorCode.NONE
) -> reassignments.AlterPartitionReassignmentsResponse:
    partition = reassignments.ReassignablePartitionResponse(partition_index=0, error_code=code, error_message=None)
    topic = reassignments.ReassignableTopicResponse(name="foo", partitions=(partition,))
    return reassignments.AlterPartitionReassignmentsResponse(error_code=whole, responses=(topic,))


def test_call_is_sent_again_when_the_controller_moves_or_the_response_is_lost() -> None:
    script = Script(_reassigned(ErrorCode.NONE, whole=ErrorCode.NOT_CONTROLLER), HANG_UP, _reassigned(ErrorCode.NONE))
    lost: list[OSError] = []
    with ScriptedBroker(script) as broker, Admin(f"127.0.0.1:{broker.port}", on_unreachable=lost.append) as admin:
        script.port = broker.port
        assert alter_reassignments(admin, {FOO_0: (1, 2)}) == {}
    assert len(script.asked) == 3
    assert len(lost) == 1


def test_what_a_partition_is_refused_is_part_of_the_result() -> None:
    script = Script(_reassigned(ErrorCode.INVALID_REPLICA_ASSIGNMENT))
    with ScriptedBroker(script) as broker, Admin(f"127.0.0.1:{broker.port}") as admin:
        script.port = broker.port
        refused = alter_reassignments(admin, {FOO_0: None})
    assert {where: each.code for where, each in refused.items()} == {FOO_0: ErrorCode.INVALID_REPLICA_ASSIGNMENT}


def test_what_the_whole_call_is_refused_is_raised_at_once() -> None:
    script = Script(_reassigned(ErrorCode.NONE, whole=ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    with ScriptedBroker(script) as broker, Admin(f"127.0.0.1:{broker.port}") as admin:
        script.port = broker.port
        with pytest.raises(Refused) as raised:
            alter_reassignments(admin, {FOO_0: None})
    assert raised.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_without_a_broker_a_call_ends_when_its_time_is_up() -> None:
    lost: list[OSError] = []
    admin = Admin("127.0.0.1:1", api_timeout_s=0.3, on_unreachable=lost.append)
    with admin, pytest.raises(Refused) as raised:
        alter_reassignments(admin, {FOO_0: (1,)})
    assert raised.value.code is ErrorCode.REQUEST_TIMED_OUT
    assert raised.value.message == "Timed out waiting for a node assignment. Call: alterPartitionReassignments"
    assert len(lost) >= 2


def test_broker_that_is_not_there_fails_only_its_own_settings() -> None:
    script = Script()
    change = [ConfigChange("x", ConfigOperation.DELETE)]
    with ScriptedBroker(script) as broker, Admin(f"127.0.0.1:{broker.port}", api_timeout_s=0.2) as admin:
        script.port = broker.port
        refused = incremental_alter_configs(admin, {ConfigResource(ResourceType.BROKER, "7"): change})
    assert {each.name: problem.code for each, problem in refused.items()} == {"7": ErrorCode.REQUEST_TIMED_OUT}


def test_addresses_that_are_none_are_refused() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        Admin("nonsense")


def test_error_code_of_a_newer_kafka_is_still_an_error() -> None:
    unknown = refusal(9999)
    assert unknown is not None
    assert (unknown.code, unknown.message) == (ErrorCode.UNKNOWN_SERVER_ERROR, "error code 9999")
    assert refusal(0) is None


# --- topics -----------------------------------------------------------------------------------------------------------


def _page(
    name: str, *partitions: int, cursor: tuple[str, int] | None = None, code: ErrorCode = ErrorCode.NONE
) -> descriptions.DescribeTopicPartitionsResponse:
    topic = descriptions.DescribeTopicPartitionsResponseTopic(
        name=name,
        topic_id=uuid.UUID(int=7),
        error_code=code,
        partitions=tuple(
            descriptions.DescribeTopicPartitionsResponsePartition(
                partition_index=number, leader_id=1, replica_nodes=(1, 2), isr_nodes=(1,), eligible_leader_replicas=(2,)
            )
            for number in partitions
        ),
    )
    following = None if cursor is None else descriptions.ResponseCursor(topic_name=cursor[0], partition_index=cursor[1])
    return descriptions.DescribeTopicPartitionsResponse(topics=(topic,), next_cursor=following)


def test_topics_are_described_page_by_page() -> None:
    script = Script(_page("bar", 0, 1, cursor=("bar", 2)), _page("bar", 2, cursor=("foo", 0)), _page("foo", 1, 0))
    with ScriptedBroker(script) as broker, Admin(f"127.0.0.1:{broker.port}") as admin:
        found = describe_topics(admin, ["foo", "bar"])
    bar, foo = found["bar"], found["foo"]
    assert isinstance(bar, TopicDescription)
    assert isinstance(foo, TopicDescription)
    assert [each.partition for each in bar.partitions] == [0, 1, 2]
    assert [each.partition for each in foo.partitions] == [0, 1]
    assert foo.partitions[0].elr == (2,)
    requests = [each for each in script.asked if isinstance(each, descriptions.DescribeTopicPartitionsRequest)]
    assert [[topic.name for topic in each.topics] for each in requests] == [["bar", "foo"], ["bar", "foo"], ["foo"]]
    assert [each.cursor and each.cursor.partition_index for each in requests] == [None, 2, 0]


def test_topic_that_does_not_exist_is_refused_and_the_others_described() -> None:
    script = Script(_page("foo", code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    with ScriptedBroker(script) as broker, Admin(f"127.0.0.1:{broker.port}") as admin:
        found = describe_topics(admin, ["foo"])["foo"]
    assert isinstance(found, Refused)
    assert found.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_broker_without_describe_topic_partitions_is_asked_for_metadata() -> None:
    partition = MetadataResponsePartition(partition_index=0, leader_id=1, replica_nodes=(1, 2), isr_nodes=(1, 2))
    topic = MetadataResponseTopic(name="foo", topic_id=ZERO_UUID, partitions=(partition,))
    key = descriptions.DescribeTopicPartitionsRequest.SCHEMA.api_key
    script = Script(MetadataResponse(brokers=(), controller_id=-1, topics=(topic,)), without=key)
    with ScriptedBroker(script) as broker, Admin(f"127.0.0.1:{broker.port}") as admin:
        found = describe_topics(admin, ["foo"])["foo"]
    assert isinstance(found, TopicDescription)
    assert (found.partitions[0].replicas, found.partitions[0].elr) == ((1, 2), None)
