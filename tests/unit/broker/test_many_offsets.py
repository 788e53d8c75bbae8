"""All offsets of very large groups are encoded from a copy, in a thread, with the same result."""

import asyncio
import threading
import uuid
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.broker.coordination.tickets import RequestTicket
from kaspar.broker.handlers import offset_fetch, slices
from kaspar.coordination import Now, StoredRecord
from kaspar.groups.offsets.committed import CommittedOffsets
from kaspar.groups.records import OffsetCommitKey, OffsetCommitValue
from kaspar.groups.shard import GroupShard
from kaspar.metadata import ClusterImage, TopicImage
from kaspar.network.api import PartlyEncoded, RequestContext
from kaspar.network.large_requests import LargeRequests
from kaspar.network.responses import count_errors, encode_response
from kaspar.protocol.api_keys import ApiKey
from kaspar.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
)
from tests.unit.groups.shell import Shell

NOW = Now(1, 1, 1)
MANY = slices.AT_ONCE + 7
PRODUCER = ProducerIdAndEpoch(7, 0)


def commit(shard: GroupShard, group: str, partition: int, offset: int, *, pending: bool = False) -> None:
    key = OffsetCommitKey(group=group, topic=f"t{partition % 3}", partition=partition)
    value = OffsetCommitValue(offset=offset, metadata="", commit_timestamp=1)
    shard.replay(StoredRecord(key, value), PRODUCER if pending else None)


def shard_of(**counts: int) -> GroupShard:
    """Groups with so many offsets; of each, a transaction is about to replace the first."""
    shard = Shell().shard
    for group, count in counts.items():
        for partition in range(count):
            commit(shard, group, partition, 10 * partition)
        commit(shard, group, 0, 1, pending=True)
    return shard


def broker_of(shard: GroupShard) -> Any:
    """What the handler asks of a broker whose coordinator has this shard."""

    def ask(group_id: str, question: Callable[[GroupShard, Now], Any], refused: Callable[[ErrorCode], Any]) -> Any:
        try:
            return question(shard, NOW)
        except Refused as refusal:
            return refused(refusal.code)

    topics = {name: TopicImage(name, uuid.UUID(int=number), ()) for number, name in enumerate(("t0", "t1"), 1)}
    broker: Any = SimpleNamespace(
        images=SimpleNamespace(current=ClusterImage("cluster", topics=topics)),  # t2 is gone
        groups=SimpleNamespace(runtime=SimpleNamespace(ask=ask)),
    )
    broker.large_requests = LargeRequests(asyncio.to_thread)
    return broker


def request_of(version: int, *groups: str) -> OffsetFetchRequest:
    if version < offset_fetch.FIRST_WITH_GROUPS:
        return OffsetFetchRequest(group_id=groups[0], topics=None, require_stable=True)
    wanted = tuple(OffsetFetchRequestGroup(group_id=group, topics=None) for group in groups)
    return OffsetFetchRequest(groups=wanted, require_stable=True)


def handle(broker: Any, version: int, request: OffsetFetchRequest) -> Any:
    context = RequestContext(ApiKey.OFFSET_FETCH, version, 1, "client", "peer", "listener")
    handler = offset_fetch.OffsetFetchHandler(broker.groups.runtime, broker.images, broker.large_requests)
    return handler(context, request)


async def awaited(result: Any) -> Any:
    return await result if asyncio.iscoroutine(result) else result


def errors_of(response: Any, version: int) -> Counter[int]:
    metrics: Any = SimpleNamespace(errors=Counter[int]())
    count_errors(metrics, version, response)
    return Counter(metrics.errors)


@pytest.mark.parametrize("version", [2, 7, 8, 9, 10])
def test_all_offsets_are_returned_alike_however_many_there_are(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    shard = shard_of(few=3, many=MANY)
    order = ("many",) if version < offset_fetch.FIRST_WITH_GROUPS else ("few", "many", "unknown")
    result = handle(broker_of(shard), version, request_of(version, *order))
    assert asyncio.iscoroutine(result)
    response = asyncio.run(awaited(result))
    assert isinstance(response, PartlyEncoded)
    monkeypatch.setattr(slices, "AT_ONCE", 10 * MANY)
    wanted = handle(broker_of(shard), version, request_of(version, *order))
    assert not asyncio.iscoroutine(wanted)
    assert encode_response(version, 1, response) == encode_response(version, 1, wanted)
    assert errors_of(response, version) == errors_of(wanted, version)


def test_few_offsets_of_many_groups_are_many() -> None:
    shard = shard_of(**{f"g{number}": 100 for number in range(6)})
    groups = sorted(shard.groups)
    assert not asyncio.iscoroutine(handle(broker_of(shard), 9, request_of(9, *groups[:5])))
    result = handle(broker_of(shard), 9, request_of(9, *groups))
    assert asyncio.iscoroutine(result)
    assert len(asyncio.run(awaited(result)).encoded["groups"]) == 6


def test_what_is_committed_meanwhile_is_not_in_the_response() -> None:
    shard, same = shard_of(many=MANY), shard_of(many=MANY)
    result = handle(broker_of(shard), 9, request_of(9, "many"))
    for partition in range(2 * MANY):
        commit(shard, "many", partition, 77)
    shard.replay(StoredRecord(OffsetCommitKey(group="many", topic="t1", partition=1), None), None)
    shard.replay_marker(PRODUCER, committed=True)
    unchanged = handle(broker_of(same), 9, request_of(9, "many"))
    assert asyncio.run(awaited(result)) == asyncio.run(awaited(unchanged))


def test_the_response_is_made_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    made_in = []
    reported = CommittedOffsets.to_wire

    def watched(self: CommittedOffsets, request: OffsetFetchRequestGroup) -> OffsetFetchResponseGroup:
        made_in.append(threading.current_thread())
        return reported(self, request)

    monkeypatch.setattr(CommittedOffsets, "to_wire", watched)
    asyncio.run(awaited(handle(broker_of(shard_of(many=MANY)), 9, request_of(9, "many"))))
    assert len(made_in) == 1
    assert threading.main_thread() not in made_in


def test_a_group_that_is_refused_after_it_was_copied_is_refused() -> None:
    """Its state was not committed in time."""
    shard = shard_of(many=MANY)
    broker = broker_of(shard)

    def ask(group_id: str, question: Callable[[GroupShard, Now], Any], refused: Callable[[ErrorCode], Any]) -> Any:
        question(shard, NOW)
        ticket = RequestTicket(refused).wait_among(set())
        ticket.refuse(ErrorCode.NOT_COORDINATOR)
        return ticket

    broker.groups.runtime.ask = ask
    response = asyncio.run(awaited(handle(broker, 9, request_of(9, "many"))))
    refused = OffsetFetchResponseGroup(group_id="many", topics=(), error_code=ErrorCode.NOT_COORDINATOR)
    wanted = offset_fetch._of_groups([refused])
    assert encode_response(9, 1, response) == encode_response(9, 1, wanted)
    assert errors_of(response, 9) == errors_of(wanted, 9)


def test_named_offsets_of_a_very_large_group_are_returned_at_once() -> None:
    topics = (OffsetFetchRequestTopics(name="t1", partition_indexes=(1, 4)),)
    request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="many", topics=topics),))
    response = handle(broker_of(shard_of(many=MANY)), 9, request)
    (reported,) = response.groups[0].topics
    assert [partition.committed_offset for partition in reported.partitions] == [10, 40]
