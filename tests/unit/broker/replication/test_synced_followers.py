"""`flush.messages=1` on a follower: its fetch says that it has the records before it, so they are synced by then."""

import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import Offset
from kaspar.broker.replication.fetcher import ReplicaFetcher
from kaspar.broker.server import Broker
from kaspar.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from kaspar.protocol.schema import Message
from kaspar.replication.partition import Partition
from kaspar.storage import Log
from tests.unit.broker.replication.test_leader import ME, OTHER, decide
from tests.unit.broker.running import create_topic, run, running, until
from tests.unit.replication.partitions import append
from tests.unit.storage.logs import make_batch

NO_HANDLE = Refused(ErrorCode.KAFKA_STORAGE_ERROR, "no file handle is left")


class Leader:
    """A connection to a leader that has one record. `events` are what it is asked for, and the syncs."""

    is_closed = False

    def __init__(self, partition: Partition, events: list[str]) -> None:
        self._partition = partition
        self._events = events

    async def request(self, request: Message, **_: Any) -> FetchResponse:
        assert isinstance(request, FetchRequest)
        (wanted,) = request.topics[0].partitions
        self._events.append(f"fetch from {wanted.fetch_offset}")
        records = bytes(make_batch()) if wanted.fetch_offset == 0 else b""
        data = PartitionData(
            partition_index=0, high_watermark=0, log_start_offset=0, aborted_transactions=None, records=records
        )
        topic = FetchableTopicResponse(topic_id=self._partition.topic_id, partitions=(data,))
        if wanted.fetch_offset > 0:
            await until(lambda: False)  # there is nothing more
        return FetchResponse(responses=(topic,))

    def abort(self) -> None:
        pass


@contextlib.asynccontextmanager
async def following(
    broker: Broker, partition: Partition, monkeypatch: pytest.MonkeyPatch, *problems: Refused
) -> AsyncIterator[list[str]]:
    """The partition follows a leader, and its first syncs fail. What happens, in order."""
    events: list[str] = []
    failing: Iterator[Refused] = iter(problems)
    real = Log.flush

    def flush(log: Log, up_to: int | None = None) -> Offset:
        for problem in failing:
            events.append("no sync")
            raise problem
        synced = real(log, up_to)
        events.append("synced")
        return synced

    monkeypatch.setattr(Log, "flush", flush)

    async def connect(*_: object) -> Any:
        return Leader(partition, events)

    services = replace(broker.replicas.fetchers._services, connect=connect, ask_to_sync=lambda partition: None)
    fetcher = ReplicaFetcher(OTHER, 0, services)
    fetcher.add(partition)
    try:
        yield events
    finally:
        await fetcher.stop()


def test_a_follower_whose_sync_is_refused_does_not_fetch_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t", flush_messages="1")
            decide(partition, OTHER, ME, leader=OTHER, epoch=9)
            async with following(broker, partition, monkeypatch, NO_HANDLE, NO_HANDLE) as events:
                await until(lambda: "fetch from 1" in events)
                assert events == ["fetch from 0", "no sync", "no sync", "synced", "fetch from 1"]

    run(scenario())


def test_what_a_follower_had_before_is_synced_before_it_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has led until now, or followed another leader, and a sync was still due."""

    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t", flush_messages="1")
            append(partition)
            assert partition.log.unflushed_messages == 1
            decide(partition, OTHER, ME, leader=OTHER, epoch=9)
            async with following(broker, partition, monkeypatch) as events:
                await until(lambda: "fetch from 1" in events)
                assert events == ["synced", "fetch from 1"]

    run(scenario())
