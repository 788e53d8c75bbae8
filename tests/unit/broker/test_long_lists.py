"""Lists of very many groups and transactional ids are made in slices, and are no different for that."""

import asyncio
import itertools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.broker.handlers import describe_producers, slices
from kaspar.broker.handlers.list_groups import ListGroupsHandler
from kaspar.broker.handlers.list_transactions import ListTransactionsHandler
from kaspar.coordination import Now
from kaspar.groups.shard import GroupShard
from kaspar.network.api import RequestContext
from kaspar.network.large_requests import LargeRequests
from kaspar.network.responses import count_errors, encode_response
from kaspar.protocol.api_keys import ApiKey
from kaspar.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicRequest,
    TopicResponse,
)
from kaspar.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from kaspar.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from kaspar.protocol.messages.list_transactions import TransactionState as ListedTransaction
from tests.unit.groups.shell import Shell
from tests.unit.storage.logs import NOW_MS, LogFolder, append, make_batch
from tests.unit.transactions.coordinator import Coordinator

NOW = Now(1, 1, 1)
MANY = slices.AT_ONCE + 7


def broker_of(*shards: Any) -> Any:
    """What the handlers ask of a broker whose coordinators have these shards."""
    runtime = SimpleNamespace(why_not_listed=lambda: ErrorCode.NONE, active_shards=lambda: dict(enumerate(shards)))
    coordinator = SimpleNamespace(runtime=runtime)
    turns = LargeRequests(asyncio.to_thread)
    return SimpleNamespace(groups=coordinator, transactions=coordinator, now=lambda: NOW, large_requests=turns)


def context(key: ApiKey, version: int) -> RequestContext:
    return RequestContext(key, version, 1, "client", "peer", "listener")


def shard_of(count: int, prefix: str) -> GroupShard:
    shard = Shell().shard
    for number in range(count):
        shard._table.add_group_of_offsets(f"{prefix}{number}")
    return shard


async def awaited(result: Any) -> Any:
    return await result if asyncio.iscoroutine(result) else result


@pytest.mark.parametrize("count", [3, MANY])
@pytest.mark.parametrize("version", [0, 5])
def test_groups_are_listed_alike_however_many_there_are(count: int, version: int) -> None:
    broker = broker_of(shard_of(count, "a"), shard_of(1, "b"))
    result = ListGroupsHandler(broker.groups.runtime, broker.large_requests)(
        context(ApiKey.LIST_GROUPS, version), ListGroupsRequest()
    )
    assert asyncio.iscoroutine(result) is (count == MANY)
    names = [*(f"a{number}" for number in range(count)), "b0"]
    listed = (ListedGroup(group_id=name, protocol_type="", group_state="Empty", group_type="classic") for name in names)
    wanted = ListGroupsResponse(groups=tuple(listed))
    assert encode_response(version, 1, asyncio.run(awaited(result))) == encode_response(version, 1, wanted)


@pytest.mark.parametrize("count", [3, MANY])
def test_transactional_ids_are_listed_alike_however_many_there_are(count: int) -> None:
    coordinator = Coordinator()
    producers = {f"id-{number}": coordinator.new_producer(transactional_id=f"id-{number}") for number in range(count)}
    request = ListTransactionsRequest(state_filters=("Empty", "Strange"), duration_filter=-1)
    broker = broker_of(coordinator.shard)
    handle = ListTransactionsHandler(broker.transactions.runtime, broker.large_requests, broker.now)
    result = handle(context(ApiKey.LIST_TRANSACTIONS, 1), request)
    assert asyncio.iscoroutine(result) is (count == MANY)
    listed = (
        ListedTransaction(transactional_id=name, producer_id=producer.producer_id, transaction_state="Empty")
        for name, producer in producers.items()
    )
    wanted = ListTransactionsResponse(unknown_state_filters=("Strange",), transaction_states=tuple(listed))
    assert encode_response(1, 1, asyncio.run(awaited(result))) == encode_response(1, 1, wanted)


@pytest.mark.parametrize("count", [3, MANY])
def test_producers_are_described_alike_however_many_there_are(tmp_path: Path, count: int) -> None:
    log = LogFolder(tmp_path).log
    for producer_id in range(count):
        append(log, make_batch(producer_id=producer_id, producer_epoch=1, base_sequence=0))

    def lead(topic: str, index: int) -> Any:
        if index:
            raise Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, "another broker is")
        return SimpleNamespace(log=log)

    request = DescribeProducersRequest(topics=(TopicRequest(name="t", partition_indexes=(0, 1)),))
    partitions: Any = SimpleNamespace(lead=lead)
    handle = describe_producers.DescribeProducersHandler(partitions, broker_of().large_requests)
    result = handle(context(ApiKey.DESCRIBE_PRODUCERS, 0), request)
    assert asyncio.iscoroutine(result) is (count == MANY)
    response = asyncio.run(awaited(result))
    (frame,) = encode_response(0, 1, response)
    producers = tuple(
        ProducerState(producer_id=each, producer_epoch=1, last_sequence=0, last_timestamp=NOW_MS, coordinator_epoch=-1)
        for each in range(count)
    )
    here = PartitionResponse(partition_index=0, active_producers=producers)
    there = PartitionResponse(
        partition_index=1,
        error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER,
        error_message="another broker is",
        active_producers=(),
    )
    wanted = DescribeProducersResponse(topics=(TopicResponse(name="t", partitions=(here, there)),))
    assert (frame,) == encode_response(0, 1, wanted)
    counted: list[Any] = [SimpleNamespace(errors=Counter[int]()) for _ in range(2)]
    count_errors(counted[0], 0, response)
    count_errors(counted[1], 0, wanted)
    assert counted[0].errors == counted[1].errors


@pytest.mark.parametrize("lists", [1, 20])
def test_others_have_their_turn_while_long_lists_are_made(lists: int) -> None:
    """Also where nothing of them is wanted, and however many are asked for at once."""
    looked_at = 0

    def nothing_wanted() -> Iterator[None]:
        nonlocal looked_at
        for _ in range(4 * slices.AT_ONCE):
            looked_at += 1
            yield None

    async def scenario() -> list[int]:
        turns = []
        broker = broker_of()
        all_of_them = asyncio.gather(
            *(slices.encoded(broker.large_requests, nothing_wanted(), 1) for _ in range(lists))
        )
        while not all_of_them.done():
            turns.append(looked_at)
            await asyncio.sleep(0)
        assert all_of_them.result() == [[]] * lists
        return turns

    turns = asyncio.run(scenario())
    assert all(after - before <= slices.AT_ONCE for before, after in itertools.pairwise(turns))
