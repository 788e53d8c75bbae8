"""The leader's side of replication: what a follower's fetch means to producers, consumers and the follower itself."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import BrokerId, LeaderEpoch
from kaspar.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData, ReplicaState
from kaspar.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kaspar.replication.partition import Partition
from kaspar.replication.state import Leadership, Role
from kaspar.storage import Log
from kaspar.storage.directories.log_directory import LogDirectory
from kaspar.storage.disk.source import NotCached
from tests.unit.broker.running import Client, create_topic, run, running, until
from tests.unit.replication.partitions import append
from tests.unit.storage.logs import make_batch

ME, OTHER, THIRD = BrokerId(1), BrokerId(2), BrokerId(3)
WITH_REPLICA_STATE = 15
LATEST, EARLIEST = -1, -2


def decide(partition: Partition, *in_sync: BrokerId, leader: BrokerId = ME, epoch: int | None = None) -> None:
    """The controller has said so."""
    now = partition.state.leadership
    decided = LeaderEpoch(now.leader_epoch if epoch is None else epoch)
    partition.lead_or_follow(Leadership(leader, decided, now.partition_epoch + 1, (ME, OTHER, THIRD), in_sync))


class Follower(Client):
    """A client that fetches in the name of a replica."""

    def ask(
        self,
        partition: Partition,
        offset: int,
        *,
        replica: BrokerId = OTHER,
        last_epoch: int = -1,
        leader_epoch: int = -1,
        broker_epoch: int = -1,
        max_wait_ms: int = 0,
    ) -> None:
        wanted = FetchPartition(
            partition=0,
            fetch_offset=offset,
            partition_max_bytes=1 << 20,
            last_fetched_epoch=last_epoch,
            current_leader_epoch=leader_epoch,
            log_start_offset=0,
        )
        request = FetchRequest(
            replica_id=replica,
            replica_state=ReplicaState(replica_id=replica, replica_epoch=broker_epoch),
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            topics=(FetchTopic(topic_id=partition.topic_id, partitions=(wanted,)),),
        )
        self.send(request, version=WITH_REPLICA_STATE)

    async def told(self) -> PartitionData:
        return (await self.fetched()).responses[0].partitions[0]


def test_a_producer_waits_for_the_followers_that_are_in_sync(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t")
            decide(partition, ME, OTHER)
            producer, consumer, follower = Client(broker), Client(broker), Follower(broker)
            follower.ask(partition, 0, max_wait_ms=5000)
            consumer.fetch(("t", 0, 0), max_wait_ms=5000)
            await asyncio.sleep(0)
            assert follower.look() == [] == consumer.look()
            producer.produce(("t", 0, make_batch([b"value"])))
            told = await follower.told()
            assert (len(told.records or b"") > 0, told.high_watermark) == (True, 0), "it reads what is not committed"
            assert producer.look() == [] == consumer.look()
            follower.ask(partition, 1)
            (produced,) = await producer.produced()
            assert produced.error_code == 0
            assert (await follower.told()).high_watermark == 1, "it hears at once what it has committed"
            assert b"value" in ((await consumer.fetched()).responses[0].partitions[0].records or b"")

    run(scenario())


def test_a_fetch_from_beyond_the_log_says_nothing_about_the_follower(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t")
            decide(partition, ME, OTHER)
            follower = Follower(broker)
            follower.ask(partition, 7)
            assert (await follower.told()).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
            assert partition.state.followers[OTHER].log_end_offset == -1

    run(scenario())


def test_kip_595_a_follower_hears_where_its_log_diverges_and_counts_for_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t")
            decide(partition, ME, OTHER, epoch=3)
            client, follower = Client(broker), Follower(broker)
            client.produce(("t", 0, make_batch([b"a", b"b"])), acks=1)
            await client.produced()
            decide(partition, ME, OTHER, epoch=5)
            follower.ask(partition, 2, last_epoch=4)
            told = await follower.told()
            assert (told.diverging_epoch.epoch, told.diverging_epoch.end_offset) == (3, 2)
            assert partition.state.followers[OTHER].log_end_offset == -1
            assert partition.high_watermark == 0
            follower.ask(partition, 2, last_epoch=3, leader_epoch=5)
            assert (await follower.told()).high_watermark == 2

    run(scenario())


def test_only_replicas_of_this_epoch_are_served(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t")
            decide(partition, ME, OTHER, epoch=3)
            follower = Follower(broker)
            for replica, leader_epoch, code in (
                (OTHER, 2, ErrorCode.FENCED_LEADER_EPOCH),
                (OTHER, 4, ErrorCode.UNKNOWN_LEADER_EPOCH),
                (BrokerId(9), 3, ErrorCode.UNKNOWN_LEADER_EPOCH),
                (BrokerId(9), -1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
            ):
                follower.ask(partition, 0, replica=replica, leader_epoch=leader_epoch)
                assert (await follower.told()).error_code == code
            decide(partition, OTHER, leader=OTHER, epoch=4)
            follower.ask(partition, 0)
            assert (await follower.told()).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    run(scenario())


def test_a_follower_that_waits_hears_of_another_leader(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t")
            decide(partition, ME, OTHER)
            follower = Follower(broker)
            follower.ask(partition, 0, max_wait_ms=9000)
            await asyncio.sleep(0)
            assert follower.look() == []
            decide(partition, OTHER, leader=OTHER, epoch=9)
            assert (await follower.told()).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    run(scenario())


def test_kip_966_a_producer_waits_while_too_few_are_in_sync(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t", min_insync_replicas="2")
            decide(partition, ME, OTHER)
            producer = Client(broker)
            producer.produce(("t", 0, make_batch()))
            await asyncio.sleep(0)
            assert producer.look() == []
            decide(partition, ME)  # the follower has left: nothing more is committed
            assert partition.high_watermark == 0
            partition.state.min_insync_replicas = 1
            partition.recheck()
            assert partition.high_watermark == 1
            (produced,) = await producer.produced()
            assert produced.error_code == 0

    run(scenario())


@pytest.mark.parametrize(
    ("version", "code"), [(5, ErrorCode.OFFSET_NOT_AVAILABLE), (4, ErrorCode.LEADER_NOT_AVAILABLE)]
)
def test_kip_207_a_new_leader_does_not_know_the_end_of_what_is_committed(
    tmp_path: Path, version: int, code: ErrorCode
) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t")
            decide(partition, ME, OTHER)
            client, follower = Client(broker), Follower(broker)
            client.produce(("t", 0, make_batch([b"a", b"b"])), acks=1)
            await client.produced()
            decide(partition, ME, OTHER, epoch=7)

            async def listed(timestamp: int, replica: int = -1) -> tuple[int, int]:
                wanted = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
                topics = (ListOffsetsTopic(name="t", partitions=(wanted,)),)
                client.send(ListOffsetsRequest(replica_id=replica, topics=topics), version=version)
                found = (await client.response(ListOffsetsResponse)).topics[0].partitions[0]
                return found.error_code, found.offset

            assert await listed(LATEST) == (code, -1)
            assert await listed(0) == (code, -1), "there is such a record, but it may not be committed"
            assert await listed(EARLIEST) == (0, 0)
            assert await listed(LATEST, OTHER) == (0, 2), "a follower asks for the log's end"
            follower.ask(partition, 2)
            await follower.told()
            assert await listed(LATEST) == (0, 2)

    run(scenario())


def test_kip_73_a_throttled_follower_gets_nothing_until_it_is_in_sync(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t", leader_replication_throttled_replicas="0:1")
            decide(partition, ME, OTHER)
            throttle = broker.replicas.throttles.leader
            throttle.limit_bytes_per_s = 1
            client, follower = Client(broker), Follower(broker)
            client.produce(("t", 0, make_batch([b"x" * 1000])), acks=1)
            await client.produced()
            follower.ask(partition, 0, replica=THIRD)
            assert len((await follower.told()).records or b"") > 1000, "the limit is not reached yet"
            follower.ask(partition, 0, replica=THIRD)
            assert len((await follower.told()).records or b"") == 0
            follower.ask(partition, 0, replica=OTHER)
            assert len((await follower.told()).records or b"") > 1000, "one in sync is never held back"
            follower.ask(partition, 0, replica=THIRD, max_wait_ms=9000)
            client.produce(("t", 0, make_batch()), acks=1)
            await client.produced()
            assert follower.look() == [], "it is not woken for what it does not get"

    run(scenario())


def test_kip_392_what_a_follower_truncates_cannot_be_read_meanwhile(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t")
            client = Client(broker)
            client.produce(("t", 0, make_batch()), acks=1)
            await client.produced()
            decide(partition, OTHER, ME, leader=OTHER, epoch=9)
            client.fetch(("t", 0, 0))
            assert (await client.fetched()).responses[0].partitions[0].error_code == 0
            partition.log.truncating = True
            client.fetch(("t", 0, 0))
            code = (await client.fetched()).responses[0].partitions[0].error_code
            assert code == ErrorCode.OFFSET_NOT_AVAILABLE
            partition.log.truncating = False

    run(scenario())


def test_a_follower_learns_no_high_watermark_from_one_that_stopped_leading_while_it_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has read from the disk, and meanwhile another leads, whose records it has taken over. What of them is
    committed says nothing about the records that a follower, who has not heard of that leader, has at these offsets.
    """

    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t")
            decide(partition, ME, OTHER, epoch=5)
            append(partition)
            real = Log.read

            def read(log: Log, *arguments: int, whole_first_batch: bool) -> bytes | bytearray:
                broker.threads.call_on_loop(lambda: decide(partition, ME, THIRD, leader=THIRD, epoch=6))
                return real(log, *arguments, whole_first_batch=whole_first_batch)

            def pread_now(directory: LogDirectory, fd: int, length: int, position: int) -> bytes:
                raise NotCached

            monkeypatch.setattr(LogDirectory, "pread_now", pread_now)
            monkeypatch.setattr(Log, "read", read)
            follower = Follower(broker)
            follower.ask(partition, 0, leader_epoch=5)
            told = await follower.told()
            assert told.error_code == ErrorCode.FENCED_LEADER_EPOCH
            assert not told.records

    run(scenario())


def test_a_broker_that_loses_its_registration_while_a_decision_is_applied_leads_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The decision waits for threads that truncate logs; it is of a time when this broker was registered."""

    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t")
            now = partition.state.leadership
            decided = Leadership(ME, LeaderEpoch(now.leader_epoch + 1), now.partition_epoch + 1, (ME,), (ME,))

            async def settled() -> None:
                broker.hosting.resign()

            monkeypatch.setattr(broker.replicas.fetchers, "settled", settled)
            await broker.replicas.lead_or_follow([(partition, decided)])
            assert partition.state.role is Role.NONE
            monkeypatch.undo()
            await broker.hosting.resume()
            partition.state.check_leader()

    run(scenario())


def test_a_broker_that_loses_its_registration_again_before_it_resumes_leads_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t")
            broker.hosting.resign()
            async with broker.hosting._following:  # an image is being carried out
                resuming = asyncio.create_task(broker.hosting.resume())
                await asyncio.sleep(0)
                resuming.cancel()
                await asyncio.gather(resuming, return_exceptions=True)
                broker.hosting.resign()
                again = asyncio.create_task(broker.hosting.make_lost("t", partition.topic_id, ()))
            await again
            assert partition.state.role is Role.NONE
            await broker.hosting.resume()
            partition.state.check_leader()

    run(scenario())


def test_a_truncation_that_began_while_a_broker_resumed_is_finished_though_its_session_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t")
            broker.hosting.resign()
            partition.log.local.truncation_due = True
            began, may_go_on = asyncio.Event(), threading.Event()
            truncate_to = broker.logs.truncate_to

            def slow(*arguments: Any, **named: Any) -> Any:
                broker.threads.call_on_loop(began.set)
                assert may_go_on.wait(10)
                return truncate_to(*arguments, **named)

            monkeypatch.setattr(broker.logs, "truncate_to", slow)
            resuming = asyncio.create_task(broker.hosting.resume())
            await began.wait()
            resuming.cancel()
            await asyncio.gather(resuming, return_exceptions=True)
            broker.hosting.resign()
            assert partition.log.truncating
            may_go_on.set()
            await until(lambda: not partition.log.truncating)
            assert partition.state.role is Role.NONE
            await broker.hosting.resume()
            partition.state.check_leader()

    run(scenario())
