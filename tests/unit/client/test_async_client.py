"""The asyncio client of a cluster against scripted brokers: the same decisions as the blocking one, for many tasks."""

import asyncio
import threading

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.async_client import AsyncClient, ClientClosed
from kaspar.client.cluster import LATEST_TIMESTAMP
from kaspar.client.coordinators import CoordinatorKind, request_coordinator
from kaspar.protocol.headers import RequestHeader
from kaspar.protocol.messages import list_offsets, metadata
from kaspar.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from kaspar.protocol.schema import Message
from tests.unit.client.clusters import OneCoordinator, OnePartition, served_by
from tests.unit.client.loops import Run
from tests.unit.client.scripted import Reply, ScriptedBroker, responding_with

METADATA = metadata.MetadataRequest(topics=None)
WHERE = TopicPartition("topic", 0)


@pytest.fixture
def cluster() -> OnePartition:
    return OnePartition()


def client_of(broker: ScriptedBroker, *, timeout_s: float = 10.0) -> AsyncClient:
    return AsyncClient(f"127.0.0.1:{broker.port}", timeout_s=timeout_s)


def test_batches_go_to_the_leader_and_come_back(run: Run, cluster: OnePartition) -> None:
    async def test() -> None:
        async with client_of(broker) as client:
            await client.produce("topic", 0, b"first", acks=0)
            stored = await client.produce("topic", 0, b"second")
            assert stored is not None
            assert stored.base_offset == 1
            assert (await client.fetch("topic", 0, 0)).records == b"firstsecond"
            assert await client.offset_at("topic", 0, LATEST_TIMESTAMP) == 2

    with served_by(cluster) as broker:
        run(test())
        assert broker.connections == 1


def test_any_request_goes_to_a_leader(run: Run, cluster: OnePartition) -> None:
    asked = list_offsets.ListOffsetsPartition(partition_index=0, timestamp=LATEST_TIMESTAMP)
    message = list_offsets.ListOffsetsRequest(
        replica_id=-1, topics=(list_offsets.ListOffsetsTopic(name="topic", partitions=(asked,)),)
    )

    async def test() -> None:
        async with client_of(broker) as client:
            leader = client.core.address_of(await client.leader_of(WHERE))
            assert leader == ("127.0.0.1", broker.port)
            response = await client.request_at(leader, message, list_offsets.ListOffsetsResponse)
            assert response.topics[0].partitions[0].offset == 0
            codes = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.INVALID_TIMESTAMP]
            await client.request_leader(
                WHERE, message, list_offsets.ListOffsetsResponse, code_of=lambda each: codes.pop(0)
            )
            assert not codes, "one code is retriable, the other one is the caller's to judge"

    with served_by(cluster) as broker:
        run(test())


def test_tasks_share_one_connection_which_is_replaced_when_it_is_lost(run: Run, cluster: OnePartition) -> None:
    async def test() -> None:
        async with client_of(broker) as client:
            await asyncio.gather(*[client.produce("topic", 0, b"batch") for _ in range(20)])
            assert broker.connections == 1
            cluster.hang_ups = 1
            await client.produce("topic", 0, b"batch")
            assert len(cluster.batches) == 21
            assert broker.connections == 2

    with served_by(cluster) as broker:
        run(test())


def test_refusals_are_retried_as_by_the_blocking_client(run: Run, cluster: OnePartition) -> None:
    async def test() -> None:
        async with client_of(broker) as client:
            cluster.refusals = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS]
            await client.produce("topic", 0, b"batch")
            assert sum(isinstance(request, metadata.MetadataRequest) for request in broker.requests) == 3
            cluster.refusals = [ErrorCode.MESSAGE_TOO_LARGE]
            with pytest.raises(Refused, match="MESSAGE_TOO_LARGE"):
                await client.produce("topic", 0, b"batch")

    with served_by(cluster) as broker:
        run(test())


def test_coordinator_that_moves_is_looked_up_again(run: Run) -> None:
    script = OneCoordinator()
    script.responses = [ErrorCode.NOT_COORDINATOR, None, ErrorCode.NONE]
    message = EndTxnRequest(transactional_id="mine", producer_id=1, producer_epoch=0, committed=True)

    async def test() -> None:
        async with client_of(broker) as client:
            steps = request_coordinator(
                client.core, CoordinatorKind.TRANSACTION, "mine", message, EndTxnResponse, resend=True
            )
            assert (await client.run(steps)).error_code == ErrorCode.NONE
            assert script.looked_for == [(CoordinatorKind.TRANSACTION, "mine")] * 3

    with ScriptedBroker(script) as broker:
        script.port = broker.port
        run(test())


def test_task_that_is_cancelled_while_it_connects_does_not_fail_the_others(run: Run, cluster: OnePartition) -> None:
    may_respond = threading.Event()

    def slow_start(header: RequestHeader, request: Message) -> Reply:
        may_respond.wait()
        return cluster(header, request)

    async def test() -> None:
        async with client_of(broker) as client:
            tasks = [asyncio.create_task(client.request(METADATA, metadata.MetadataResponse)) for _ in range(3)]
            await asyncio.sleep(0.01)
            tasks[0].cancel()
            may_respond.set()
            for task in tasks[1:]:
                assert (await task).controller_id == 1
            assert tasks[0].cancelled()

    with ScriptedBroker(slow_start) as broker:
        cluster.port = broker.port
        run(test())


def test_broker_that_does_not_listen_is_passed_over(run: Run, cluster: OnePartition) -> None:
    async def test() -> None:
        async with AsyncClient(f"127.0.0.1:{gone},127.0.0.1:{broker.port}") as client:
            assert (await client.request(METADATA, metadata.MetadataResponse)).controller_id == 1
        async with AsyncClient(f"127.0.0.1:{gone}") as client:
            with pytest.raises(ConnectionRefusedError):
                await client.request(METADATA, metadata.MetadataResponse)
        async with AsyncClient() as client:
            with pytest.raises(ConnectionError, match="no bootstrap server was given"):
                await client.request(METADATA, metadata.MetadataResponse)
            address = ("127.0.0.1", broker.port)
            assert (await client.request_at(address, METADATA, metadata.MetadataResponse, 4)).controller_id == 1

    with responding_with(None) as closed:
        gone = closed.port
    with served_by(cluster) as broker:
        run(test())


def test_closing_ends_requests_and_retries(run: Run, cluster: OnePartition) -> None:
    async def test() -> None:
        client = client_of(broker)
        cluster.refusals = [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 1000
        retrying = asyncio.create_task(client.produce("topic", 0, b"batch"))
        silent_client = client_of(silent)
        waiting = asyncio.create_task(silent_client.request(METADATA, metadata.MetadataResponse))
        while len(cluster.refusals) > 990 or len(silent.requests) < 2:  # noqa: ASYNC110 - they come in other threads
            await asyncio.sleep(0.001)
        await client.close()
        await silent_client.close()
        with pytest.raises(ClientClosed):
            await retrying
        with pytest.raises(ConnectionAbortedError, match="was closed by this side"):
            await waiting
        with pytest.raises(ClientClosed):
            await client.request(METADATA, metadata.MetadataResponse)

    with served_by(cluster) as broker, responding_with(None) as silent:
        run(test())
