"""What Apache Kafka cannot show: APIs that are ours, transactions without a timeout, patterns, very long responses."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kaspar.acls import Acl, AclOperation, AclPermissionType, PatternType, ResourceType
from kaspar.base.errors import ErrorCode
from kaspar.broker.authorization.guards import filtered, with_elements
from kaspar.broker.server import Broker
from kaspar.config.broker.authorization import STANDARD_AUTHORIZER
from kaspar.controller.events import CreateAcls
from kaspar.network.api import PartlyEncoded
from kaspar.network.gates import Principal
from kaspar.protocol import codec
from kaspar.protocol.messages.compact_topics import (
    CompactTopicsPartition,
    CompactTopicsRequest,
    CompactTopicsResponse,
    CompactTopicsTopic,
)
from kaspar.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kaspar.protocol.messages.follow_image import FollowImageRequest, FollowImageResponse
from kaspar.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kaspar.protocol.messages.list_groups import ListedGroup, ListGroupsResponse
from kaspar.protocol.messages.submit_event import SubmitEventRequest, SubmitEventResponse
from kaspar.protocol.messages.write_txn_fences import TxnFence, WriteTxnFencesRequest, WriteTxnFencesResponse
from tests.unit.broker.running import Client, create_topic, run, running

ALICE = Principal("User", "alice")
CLUSTER_DENIED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


@asynccontextmanager
async def secured(folder: Path, **settings: str) -> AsyncIterator[tuple[Broker, Client]]:
    more = {"authorizer_class_name": STANDARD_AUTHORIZER, "offsets_topic_num_partitions": "1", **settings}
    async with running(folder, **more) as broker:
        alice = Client(broker)
        alice.connection.principal = ALICE
        yield broker, alice


async def allow(broker: Broker, operation: AclOperation, resource_type: ResourceType, name: str) -> None:
    acl = Acl(resource_type, name, PatternType.LITERAL, str(ALICE), "*", operation, AclPermissionType.ALLOW)
    await broker.controller.submit(CreateAcls((acl,)))


def test_only_brokers_follow_the_image_submit_events_and_write_fences(tmp_path: Path) -> None:
    fence = TxnFence(topic="t", partition_index=0, producer_id=1, producer_epoch=0, coordinator_epoch=0)

    async def scenario() -> None:
        async with secured(tmp_path) as (broker, alice):
            alice.send(FollowImageRequest(max_wait_ms=0), version=0)
            followed = await alice.response(FollowImageResponse)
            assert (followed.error_code, followed.delta) == (CLUSTER_DENIED, None)
            alice.send(SubmitEventRequest(event="DeleteAcls", payload=b""), version=0)
            assert (await alice.response(SubmitEventResponse)).error_code == CLUSTER_DENIED
            alice.send(WriteTxnFencesRequest(fences=(fence, fence)), version=0)
            fenced = await alice.response(WriteTxnFencesResponse)
            assert [each.error_code for each in fenced.results] == [CLUSTER_DENIED] * 2
            await allow(broker, AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, "kafka-cluster")
            alice.send(SubmitEventRequest(event="DeleteAcls", payload=b""), version=0)
            assert (await alice.response(SubmitEventResponse)).error_code == ErrorCode.NOT_CONTROLLER

    run(scenario())


def test_compacting_a_topic_now_needs_alter(tmp_path: Path) -> None:
    topic = CompactTopicsTopic(name="t", partitions=(CompactTopicsPartition(partition_index=0),))

    async def scenario() -> None:
        async with secured(tmp_path) as (broker, alice):
            await create_topic(broker, "t", cleanup_policy="compact")
            codes = []
            for _ in range(2):
                alice.send(CompactTopicsRequest(topics=(topic,)), version=0)
                response = await alice.response(CompactTopicsResponse)
                codes.append(response.topics[0].partitions[0].error_code)
                await allow(broker, AclOperation.ALTER, ResourceType.TOPIC, "t")
            assert codes == [ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.NONE]

    run(scenario())


def test_a_transaction_without_a_timeout_needs_two_phase_commit(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with secured(tmp_path, transaction_two_phase_commit_enable="true") as (broker, alice):
            await broker.coordinators.load_transactions()
            await broker.transactions.runtime.ensure_topic()

            async def code(**more: Any) -> int:
                request = InitProducerIdRequest(transactional_id="id", transaction_timeout_ms=60_000, **more)
                alice.send(request, version=6)
                return (await alice.response(InitProducerIdResponse)).error_code

            denied = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            assert await code() == denied
            await allow(broker, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, "id")
            assert await code() == ErrorCode.NONE
            assert await code(enable_2pc=True) == denied
            await allow(broker, AclOperation.TWO_PHASE_COMMIT, ResourceType.TRANSACTIONAL_ID, "id")
            assert await code(enable_2pc=True) == ErrorCode.NONE

    run(scenario())


def test_a_pattern_stands_for_the_topics_that_its_member_may_describe(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with secured(tmp_path) as (broker, alice):
            for name in ("open", "secret"):
                await create_topic(broker, name)
            await broker.coordinators.load_groups()
            await broker.groups.runtime.ensure_topic()
            await allow(broker, AclOperation.READ, ResourceType.GROUP, "g")
            await allow(broker, AclOperation.READ, ResourceType.TOPIC, "open")
            epoch, assigned = 0, None
            while assigned is None or not assigned.topic_partitions:
                request = ConsumerGroupHeartbeatRequest(
                    group_id="g",
                    member_id="m",
                    member_epoch=epoch,
                    rebalance_timeout_ms=30_000,
                    subscribed_topic_regex=None if epoch else "open|secret",
                    topic_partitions=None if epoch else (),
                )
                alice.send(request, version=1)
                response = await alice.response(ConsumerGroupHeartbeatResponse)
                assert response.error_code == ErrorCode.NONE, response.error_message
                epoch, assigned = response.member_epoch, response.assignment or assigned
                await asyncio.sleep(0.005)
            names = [broker.images.current.topic_names[each.topic_id] for each in assigned.topic_partitions]
            assert names == ["open"]

    run(scenario())


def groups(count: int) -> tuple[ListedGroup, ...]:
    return tuple(ListedGroup(group_id=f"g{number}", protocol_type="") for number in range(count))


@pytest.mark.parametrize("count", [3, 1000])
def test_what_is_encoded_already_is_filtered_too(count: int) -> None:
    listed = groups(count)
    whole = ListGroupsResponse(groups=listed)
    encoded = PartlyEncoded(ListGroupsResponse(groups=()), {"groups": [codec.write(each, 5) for each in listed]}, {})

    def keep(group: ListedGroup) -> bool:
        return group.group_id.endswith("1")

    async def later(result: Any) -> Any:
        return result

    async def scenario() -> None:
        expected = tuple(filter(keep, listed))
        assert filtered(whole, "groups", ListedGroup, keep, 5) == ListGroupsResponse(groups=expected)
        for result in (encoded, later(encoded)):
            response: Any = await filtered(result, "groups", ListedGroup, keep, 5)  # type: ignore[misc]
            assert response.encoded["groups"] == [codec.write(each, 5) for each in expected]

    asyncio.run(scenario())


def test_refusals_are_put_where_they_belong() -> None:
    a, b, c, d = groups(4)
    for places, first, expected in (((), True, (c, d, a, b)), ((), False, (a, b, c, d)), ((0, 2), False, (c, a, d, b))):
        plain = with_elements(ListGroupsResponse(groups=(a, b)), "groups", (c, d), 5, first=first, places=places)
        assert plain == ListGroupsResponse(groups=expected)
        encoded = PartlyEncoded(
            ListGroupsResponse(groups=()), {"groups": [codec.write(each, 5) for each in (a, b)]}, {}
        )
        joined = with_elements(encoded, "groups", (c, d), 5, first=first, places=places)
        assert isinstance(joined, PartlyEncoded)
        assert joined.encoded["groups"] == [codec.write(each, 5) for each in expected]


@pytest.mark.parametrize("authorizer", ["", STANDARD_AUTHORIZER])
def test_what_is_between_brokers_is_refused_on_the_listeners_of_clients(tmp_path: Path, authorizer: str) -> None:
    fence = TxnFence(topic="t", partition_index=0, producer_id=1, producer_epoch=0, coordinator_epoch=0)
    settings = {
        "listeners": "OUTSIDE://127.0.0.1:0,INSIDE://127.0.0.1:0",
        "listener_security_protocol_map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        "inter_broker_listener_name": "INSIDE",
        "super_users": str(ALICE),
    }

    async def scenario() -> None:
        async with secured(tmp_path, **settings, authorizer_class_name=authorizer) as (broker, outside):
            inside = Client(broker, 1)
            inside.connection.principal = ALICE
            codes = []
            for sender in (outside, inside):
                sender.send(FollowImageRequest(max_wait_ms=0), version=0)
                codes.append((await sender.response(FollowImageResponse)).error_code)
                sender.send(SubmitEventRequest(event="DeleteAcls", payload=b""), version=0)
                codes.append((await sender.response(SubmitEventResponse)).error_code)
                sender.send(WriteTxnFencesRequest(fences=(fence,)), version=0)
                codes.append((await sender.response(WriteTxnFencesResponse)).results[0].error_code)
            not_controller, unknown = ErrorCode.NOT_CONTROLLER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert codes == [CLUSTER_DENIED] * 3 + [not_controller, not_controller, unknown]

    run(scenario())
