"""Responses for what a single broker without security does not have: ACLs, SASL, reassignments, a quorum."""

from pathlib import Path

from kaspar.base.errors import ErrorCode
from kaspar.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from kaspar.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from kaspar.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from kaspar.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    RequestPartitionData,
    RequestTopicData,
)
from kaspar.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)
from kaspar.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kaspar.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from tests.unit.broker.running import Client, create_topic, run, running

ANY, TOPIC, LITERAL = 1, 2, 3
DISABLED = (ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")


def test_without_an_authorizer_every_request_about_acls_says_so(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            client = Client(broker)
            of_all = DeleteAclsFilter(
                resource_type_filter=ANY,
                resource_name_filter=None,
                pattern_type_filter=ANY,
                principal_filter=None,
                host_filter=None,
                operation=ANY,
                permission_type=ANY,
            )
            creation = AclCreation(
                resource_type=TOPIC,
                resource_name="t",
                resource_pattern_type=LITERAL,
                principal="User:a",
                host="*",
                operation=ANY,
                permission_type=ANY,
            )
            everything = DescribeAclsRequest(
                resource_type_filter=ANY,
                resource_name_filter=None,
                pattern_type_filter=ANY,
                principal_filter=None,
                host_filter=None,
                operation=ANY,
                permission_type=ANY,
            )
            for version in (1, 2, 3):
                client.send(everything, version=version)
                described = await client.response(DescribeAclsResponse)
                assert (described.error_code, described.error_message) == DISABLED
                client.send(CreateAclsRequest(creations=(creation, creation)), version=version)
                created = await client.response(CreateAclsResponse)
                assert [(each.error_code, each.error_message) for each in created.results] == [DISABLED] * 2
                client.send(DeleteAclsRequest(filters=(of_all, of_all)), version=version)
                deleted = await client.response(DeleteAclsResponse)
                assert [(each.error_code, each.error_message) for each in deleted.filter_results] == [DISABLED] * 2

    run(scenario())


def test_a_plain_listener_takes_no_sasl_and_goes_on_serving(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            client = Client(broker)
            for version in (0, 1):
                client.send(SaslHandshakeRequest(mechanism="PLAIN"), version=version)
                shaken = await client.response(SaslHandshakeResponse)
                assert (shaken.error_code, shaken.mechanisms) == (ErrorCode.ILLEGAL_SASL_STATE, ())
            for version in (0, 1, 2):
                client.send(SaslAuthenticateRequest(auth_bytes=b"secret"), version=version)
                response = await client.response(SaslAuthenticateResponse)
                assert response.error_code == ErrorCode.ILLEGAL_SASL_STATE
            assert not client.transport.is_closing()

    run(scenario())


def test_no_partition_is_being_moved(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            await create_topic(broker, "t")
            client = Client(broker)
            named = tuple(ListPartitionReassignmentsTopics(name=name, partition_indexes=(0, 9)) for name in ("t", "u"))
            for topics in (None, (), named):
                client.send(ListPartitionReassignmentsRequest(topics=topics), version=0)
                assert await client.response(ListPartitionReassignmentsResponse) == ListPartitionReassignmentsResponse(
                    topics=()
                )

    run(scenario())


def quorum_of(topic: str, *partitions: int) -> DescribeQuorumRequest:
    asked = tuple(RequestPartitionData(partition_index=index) for index in partitions)
    return DescribeQuorumRequest(topics=(RequestTopicData(topic_name=topic, partitions=asked),))


def test_the_controller_is_leader_and_only_voter_of_the_metadata(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            client = Client(broker)
            for version in (0, 1, 2):
                client.send(quorum_of("__cluster_metadata", 0), version=version)
                response = await client.response(DescribeQuorumResponse)
                (partition,) = response.topics[0].partitions
                assert (partition.error_code, partition.leader_id) == (ErrorCode.NONE, 1)
                assert partition.leader_epoch == broker.image.controller_epoch
                assert [voter.replica_id for voter in partition.current_voters] == [1]
                assert partition.observers == ()
            (node,) = response.nodes
            assert (node.node_id, node.listeners[0].port) == (1, broker.port)
            for other in (quorum_of("__cluster_metadata", 1), quorum_of("t", 0), quorum_of("__cluster_metadata", 0, 1)):
                client.send(other, version=2)
                response = await client.response(DescribeQuorumResponse)
                codes = {partition.error_code for topic in response.topics for partition in topic.partitions}
                assert codes == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}

    run(scenario())
