"""Requests of many elements are read in a thread and handled in turns, and everything else keeps its order."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.broker.fetch import response
from kaspar.broker.handlers import metadata
from kaspar.broker.produce import appender, request_append
from kaspar.network import large_requests
from kaspar.network.exchange import Outcome
from kaspar.network.large_requests import Steps
from kaspar.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from kaspar.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kaspar.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kaspar.protocol.messages.produce import ProduceResponse
from tests.unit.broker.running import Client, create_topic, run, running, sizes, until
from tests.unit.storage.logs import make_batch

API_VERSIONS = ApiVersionsRequest(client_software_name="test", client_software_version="1")


def naming(count: int) -> MetadataRequest:
    topics = tuple(MetadataRequestTopic(name=f"topic-{number}") for number in range(count))
    return MetadataRequest(topics=topics, allow_auto_topic_creation=False)


@pytest.mark.parametrize("count", [1_000, 30_000], ids=["in the shared buffer", "in a buffer of its own"])
def test_a_large_request_is_handled_in_turns_and_its_order_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    handled: list[int] = []
    read_in: list[threading.Thread] = []
    handle, read = metadata.MetadataHandler.__call__, large_requests._read

    def watched_handle(handler: metadata.MetadataHandler, context: Any, request: MetadataRequest) -> Any:
        handled.append(len(request.topics or ()))
        return handle(handler, context, request)

    def watched_read(*arguments: Any) -> Any:
        read_in.append(threading.current_thread())
        return read(*arguments)

    monkeypatch.setattr(metadata.MetadataHandler, "__call__", watched_handle)
    monkeypatch.setattr(large_requests, "_read", watched_read)

    async def scenario() -> None:
        async with running(tmp_path) as broker:
            client, other = Client(broker), Client(broker)
            client.send(API_VERSIONS, version=3)
            client.send(naming(count))
            client.send(API_VERSIONS, version=3)
            assert not client.transport.is_reading()
            other.send(API_VERSIONS, version=3)  # comes into the buffer that both share
            assert len(other.look()) == 1
            assert len(client.look()) == 1

            await client.response(ApiVersionsResponse)
            metadata = await client.response(MetadataResponse)
            await client.response(ApiVersionsResponse)

            assert [topic.name for topic in metadata.topics] == [f"topic-{number}" for number in range(count)]
            assert {topic.error_code for topic in metadata.topics} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
            assert client.transport.is_reading()

    run(scenario())
    assert sum(handled) == count
    assert max(handled) == 250
    assert read_in
    assert threading.main_thread() not in read_in


def test_a_request_that_cannot_be_divided_is_bounded(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            client = Client(broker)
            topic = AddPartitionsToTxnTopic(name="topic", partitions=tuple(range(20_001)))
            client.send(
                AddPartitionsToTxnRequest(
                    v3_and_below_transactional_id="t",
                    v3_and_below_producer_id=1,
                    v3_and_below_producer_epoch=0,
                    v3_and_below_topics=(topic,),
                ),
                version=3,
            )
            await until(client.transport.is_closing)
            assert broker.metrics.malformed_requests.value == 1

    run(scenario())


def test_a_client_that_leaves_takes_its_large_request_with_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            client = Client(broker)
            client.send(naming(5_000))
            client.transport.abort()
            other = Client(broker)
            other.send(naming(500))
            assert len((await other.response(MetadataResponse)).topics) == 500

    run(scenario())


def test_a_short_request_does_not_wait_for_the_long_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            may_go_on = asyncio.Event()
            handle_pieces = broker.large_requests._handle_pieces

            async def wait_if_long(*arguments: Any) -> Any:
                request = arguments[3]
                if len(request.topics) > 1_000:
                    await may_go_on.wait()
                return await handle_pieces(*arguments)

            monkeypatch.setattr(broker.large_requests, "_handle_pieces", wait_if_long)
            long = [Client(broker) for _ in range(large_requests.UNDER_WAY + 2)]
            for client in long:
                client.send(naming(5_000))
            short = Client(broker)
            short.send(naming(500))
            assert len((await short.response(MetadataResponse)).topics) == 500
            may_go_on.set()
            for client in long:
                assert len((await client.response(MetadataResponse)).topics) == 5_000

    run(scenario())


def test_batches_of_many_partitions_are_appended_in_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_append, "BATCHES_AT_ONCE", 3)

    async def scenario() -> None:
        async with running(tmp_path) as broker:
            partitions = await create_topic(broker, "topic", 8)
            client = Client(broker)
            client.produce(*(("topic", index, make_batch([b"first"])) for index in range(9)))
            client.produce(("topic", 0, make_batch([b"second"])))
            assert not client.transport.is_reading()
            assert not client.look()

            responses = await client.produced()
            assert [(each.index, each.error_code, each.base_offset) for each in responses] == [
                *((index, 0, 0) for index in range(8)),
                (8, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
            ]
            (second,) = await client.produced()
            assert second.base_offset == 1
            assert [partition.log.log_end_offset for partition in partitions] == [2] + [1] * 7

    run(scenario())


def test_acks_0_of_many_partitions_has_no_response(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_append, "BATCHES_AT_ONCE", 3)

    async def scenario() -> None:
        async with running(tmp_path) as broker:
            await create_topic(broker, "topic", 8)
            client = Client(broker)
            client.produce(*(("topic", index, make_batch()) for index in range(8)), acks=0)
            client.produce(("topic", 0, make_batch()))
            produced = await client.response(ProduceResponse)
            assert produced.responses[0].partition_responses[0].base_offset == 1

    run(scenario())


def test_acks_0_of_many_partitions_is_one_request_whenever_its_batches_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_append, "BATCHES_AT_ONCE", 3)
    monkeypatch.setattr(appender, "prepare_plain", lambda *_: None)  # every batch is checked in a thread
    monkeypatch.setattr(appender, "prepare_inline", lambda *_: None)

    async def scenario() -> None:
        async with running(tmp_path) as broker:
            await create_topic(broker, "topic", 8)

            async def each_written_before_the_next(steps: Steps[Outcome]) -> Outcome:
                while True:
                    try:
                        next(steps)
                    except StopIteration as end:
                        outcome: Outcome = end.value
                        return outcome
                    await until(lambda: not broker.backlog.waiting_count)

            monkeypatch.setattr(broker.large_requests, "in_turns", each_written_before_the_next)
            client = Client(broker)
            client.produce(*(("topic", index, make_batch()) for index in range(8)), acks=0)
            client.produce(("topic", 0, make_batch()))
            await client.response(ProduceResponse)
            await until(lambda: not broker.backlog.waiting_count)
            assert sum(broker.metrics.requests.of("Produce").versions().values()) == 2

    run(scenario())


def test_a_fetch_of_many_partitions_is_read_waits_and_responds_in_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(response, "PARTITIONS_AT_ONCE", 3)

    async def scenario() -> None:
        async with running(tmp_path) as broker:
            await create_topic(broker, "topic", 8)
            client, producer = Client(broker), Client(broker)
            producer.produce(("topic", 3, make_batch()))
            await producer.produced()
            everything = [("topic", index, 0) for index in range(8)]
            client.fetch(*everything, session_epoch=0)
            first = await client.fetched()
            size = sizes(first)["topic", 3]
            assert size > 0
            assert sum(sizes(first).values()) == size

            # An incremental fetch names little, and is large by what its session remembers.
            client.fetch(("topic", 3, 1), session_id=first.session_id, session_epoch=1, max_wait_ms=60_000)
            await until(lambda: broker.pipeline.purgatories()[1].delayed == 1)
            producer.produce(("topic", 7, make_batch()))
            second = await client.fetched()
            assert sizes(second)["topic", 7] == size

    run(scenario())
