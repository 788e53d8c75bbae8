"""Replication end to end, over sockets: what the leader has the followers have, and what is acknowledged stays."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, Message, Producer

from kaspar.base.errors import ErrorCode, StorageFailure
from kaspar.base.ids import BrokerId, LeaderEpoch
from kaspar.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from kaspar.replication.state import Role
from tests.integration.in_process_cluster import PATIENCE_S, InProcessCluster, running_cluster, until
from tests.unit.storage.logs import make_batch, read_values


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 2 * PATIENCE_S))


async def produce_all(cluster: InProcessCluster, leader: int, topic: str, count: int, start: int = 0) -> None:
    for number in range(start, start + count):
        produced = await cluster.produce(leader, topic, b"value %d" % number)
        assert (produced.error_code, produced.base_offset) == (0, number)


def test_followers_have_the_same_bytes_as_the_leader(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_cluster(tmp_path, 1, 2, 3) as cluster:
            await cluster.create_topic("orders", (1, 2, 3))
            await produce_all(cluster, 1, "orders", 20)
            assert cluster.partition(1, "orders").high_watermark == 20
            contents = await cluster.equal_logs("orders", 1, 2, 3)
            assert contents.count(b"value") == 20

    run(scenario())


def test_a_large_log_is_copied_by_a_follower_that_starts_late(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_cluster(tmp_path, 1, 2) as cluster:
            await cluster.create_topic("large", (1, 2), segment_bytes="1048576")
            await cluster.crash(2)
            for number in range(40):
                produced = await cluster.produce(1, "large", batch=make_batch([bytes([number]) * 300_000]), acks=1)
                assert produced.error_code == 0
            await cluster.start(2)
            contents = await cluster.equal_logs("large", 1, 2)
            assert len(contents) > 40 * 300_000
            assert cluster.partition(2, "large").log.segment_count > 5
            await cluster.in_sync("large", 1, 2)

    run(scenario())


def test_a_leader_is_killed_and_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_cluster(tmp_path, 1, 2, 3) as cluster:
            await cluster.create_topic("orders", (1, 2, 3))
            await produce_all(cluster, 1, "orders", 10)
            await cluster.crash(1)
            await until(lambda: cluster.image_of("orders").leader == 2)
            await until(lambda: cluster.partition(2, "orders").state.role is Role.LEADER)
            await produce_all(cluster, 2, "orders", 10, start=10)
            await cluster.equal_logs("orders", 2, 3)
            await cluster.start(1)
            await cluster.in_sync("orders", 1, 2, 3)
            contents = await cluster.equal_logs("orders", 1, 2, 3)
            assert contents.count(b"value") == 20

    run(scenario())


def test_kip_101_a_former_leader_truncates_what_only_it_had(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_cluster(tmp_path, 1, 2) as cluster:
            await cluster.create_topic("orders", (1, 2))
            await produce_all(cluster, 1, "orders", 3)
            await cluster.equal_logs("orders", 1, 2)
            await cluster.brokers[2].replicas.fetchers.stop()
            for _ in range(4):  # written on one replica, and acknowledged by that one alone
                assert (await cluster.produce(1, "orders", b"lost", acks=1)).error_code == 0
            assert cluster.partition(1, "orders").high_watermark == 3
            await cluster.crash(1)
            await until(lambda: cluster.image_of("orders").leader == 2)
            await until(lambda: cluster.partition(2, "orders").state.role is Role.LEADER)
            await produce_all(cluster, 2, "orders", 2, start=3)
            await cluster.start(1)
            await cluster.in_sync("orders", 1, 2)
            contents = await cluster.equal_logs("orders", 1, 2)
            assert contents.count(b"value") == 5
            assert b"lost" not in contents

    run(scenario())


def test_a_follower_that_falls_behind_leaves_and_comes_back(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_cluster(tmp_path, 1, 2, replica_lag_time_max_ms="400") as cluster:
            await cluster.create_topic("orders", (1, 2))
            await produce_all(cluster, 1, "orders", 1)
            follower = cluster.brokers[2].replicas.fetchers
            await follower.stop()
            # It waits for the follower until that has left.
            assert (await cluster.produce(1, "orders", b"value")).error_code == 0
            await cluster.in_sync("orders", 1)
            assert cluster.brokers[1].replicas.in_sync.shrinks == 1
            follower._is_stopping = False
            follower.follow(cluster.brokers[2].partitions)
            await cluster.in_sync("orders", 1, 2)
            assert cluster.brokers[1].replicas.in_sync.expansions == 1
            await cluster.equal_logs("orders", 1, 2)

    run(scenario())


def test_kip_966_nothing_is_committed_below_min_insync_replicas(tmp_path: Path) -> None:
    async def scenario() -> None:
        # Long enough for the first record to be appended while all are in sync, though two have crashed.
        async with running_cluster(tmp_path, 1, 2, 3, replica_lag_time_max_ms="2500") as cluster:
            await cluster.create_topic("orders", (1, 2, 3), min_insync_replicas="2")
            await produce_all(cluster, 1, "orders", 2)
            await cluster.crash(2)
            await cluster.crash(3)
            waiting = asyncio.create_task(cluster.produce(1, "orders", b"uncommitted", timeout_ms=1500))
            await cluster.in_sync("orders", 1)
            refused = await cluster.produce(1, "orders", b"refused")
            assert refused.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
            assert (await cluster.produce(1, "orders", b"acks 1", acks=1)).error_code == 0
            assert cluster.partition(1, "orders").high_watermark == 2
            assert (await waiting).error_code == ErrorCode.REQUEST_TIMED_OUT
            await cluster.start(3)
            await cluster.in_sync("orders", 1, 3)
            await until(lambda: cluster.partition(1, "orders").high_watermark == 4)
            await cluster.equal_logs("orders", 1, 3)

    run(scenario())


def test_a_producer_that_waits_hears_that_the_leader_has_changed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_cluster(tmp_path, 1, 2) as cluster:
            await cluster.create_topic("orders", (1, 2))
            await produce_all(cluster, 1, "orders", 1)
            await cluster.brokers[2].replicas.fetchers.stop()
            waiting = asyncio.create_task(cluster.produce(1, "orders", b"waits"))
            await until(lambda: cluster.partition(1, "orders").log.log_end_offset == 2)
            now = cluster.image_of("orders")
            cluster.publish(
                "orders",
                now._replace(
                    leader=now.replicas[1],
                    leader_epoch=type(now.leader_epoch)(now.leader_epoch + 1),
                    partition_epoch=now.partition_epoch + 1,
                ),
            )
            assert (await waiting).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    run(scenario())


def test_kip_392_a_consumer_reads_from_the_replica_in_its_rack(tmp_path: Path) -> None:
    async def scenario() -> None:
        selector = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
        async with running_cluster(tmp_path, 1, 2, replica_selector_class=selector) as cluster:
            await cluster.create_topic("orders", (1, 2))
            await produce_all(cluster, 1, "orders", 5)
            await cluster.equal_logs("orders", 1, 2)
            near = await cluster.fetch(1, "orders", 0, rack="rack-1")
            assert (near.preferred_read_replica, len(near.records or b"") > 0) == (-1, True)
            elsewhere = await cluster.fetch(1, "orders", 0, rack="rack-2")
            assert (elsewhere.preferred_read_replica, elsewhere.records) == (2, b"")
            assert (await cluster.fetch(1, "orders", 0, rack="unknown")).preferred_read_replica == -1
            read = await cluster.fetch(2, "orders", 0, rack="rack-2")
            assert read.error_code == 0
            assert read.records == cluster.contents(1, "orders")
            older = await cluster.fetch(2, "orders", 0, version=10)
            assert older.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            # One that waits at a follower is woken by what the follower learns to be committed.
            waiting = asyncio.create_task(cluster.fetch(2, "orders", 5, rack="rack-2", max_wait_ms=10_000))
            await produce_all(cluster, 1, "orders", 1, start=5)
            assert b"value 5" in ((await waiting).records or b"")

    run(scenario())


def test_a_follower_whose_end_the_leader_has_deleted_starts_at_the_leaders_start(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_cluster(tmp_path, 1, 2) as cluster:
            await cluster.create_topic("orders", (1, 2))
            await produce_all(cluster, 1, "orders", 2)
            await cluster.crash(2)
            await cluster.produce(1, "orders", b"a", b"b", b"c", b"d", acks=1)
            leader = cluster.partition(1, "orders")
            leader.log.move_log_start_offset(4)  # in the middle of a batch, as DeleteRecords may
            await cluster.start(2)
            await until(lambda: cluster.partition(2, "orders").log.log_end_offset == 6)
            follower = cluster.partition(2, "orders").log
            await until(lambda: follower.log_start_offset == 4)
            assert follower.segments.base_offsets[0] == 2, "the log starts with the batch that has the leader's start"
            assert cluster.contents(1, "orders").endswith(cluster.contents(2, "orders"))

    run(scenario())


def test_a_replica_that_leaves_a_broker_is_removed_with_its_log(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_cluster(tmp_path, 1, 2) as cluster:
            await cluster.create_topic("orders", (1, 2), (1, 2))
            await produce_all(cluster, 1, "orders", 2)
            await cluster.equal_logs("orders", 1, 2)
            now = cluster.image_of("orders")
            only = (now.replicas[0],)
            cluster.publish(
                "orders", now._replace(replicas=only, isr=only, partition_epoch=now.partition_epoch + 1, directories=())
            )
            hosted = cluster.brokers[2].partitions.by_name["orders"]
            await until(lambda: set(hosted.partitions) == {1})
            await until(lambda: not (tmp_path / "2" / "orders-0").exists())
            assert (tmp_path / "2" / "orders-1").exists()
            assert (tmp_path / "1" / "orders-0").exists()
            assert (await cluster.produce(1, "orders", b"alone")).error_code == 0

    run(scenario())


def test_a_broker_that_resigns_leads_and_follows_nothing_until_it_resumes(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_cluster(tmp_path, 1, 2) as cluster:
            await cluster.create_topic("led", (1, 2))
            await cluster.create_topic("followed", (2, 1))
            await produce_all(cluster, 1, "led", 2)
            await produce_all(cluster, 2, "followed", 2)
            hosting = cluster.brokers[1].hosting
            hosting.resign()
            assert len(cluster.brokers[1].replicas.fetchers) == 1
            for topic in ("led", "followed"):
                assert (await cluster.fetch(1, topic, 0)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert (await cluster.produce(1, "led", b"x")).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            await cluster.create_topic("later", (2, 1))  # an image that arrives meanwhile changes nothing
            assert cluster.partition(1, "later").state.role is Role.NONE
            await hosting.resume()
            await produce_all(cluster, 1, "led", 2, start=2)
            await produce_all(cluster, 2, "followed", 2, start=2)
            await produce_all(cluster, 2, "later", 2)
            for topic in ("led", "followed", "later"):
                await cluster.equal_logs(topic, 1, 2)

    run(scenario())


@pytest.mark.parametrize("flush_messages", ["1", "9223372036854775807"])
def test_a_restarted_leader_begins_with_its_high_watermark(tmp_path: Path, flush_messages: str) -> None:
    async def scenario() -> None:
        async with running_cluster(tmp_path, 1, 2) as cluster:
            await cluster.create_topic("orders", (1, 2), flush_messages=flush_messages)
            await produce_all(cluster, 1, "orders", 5)
            await cluster.equal_logs("orders", 1, 2)
            for broker_id in (2, 1):
                await cluster.brokers.pop(broker_id).stop()
            await cluster.start(1)
            await until(lambda: cluster.partition(1, "orders").state.role is Role.LEADER)
            assert cluster.partition(1, "orders").high_watermark == 5
            await cluster.start(2)
            await produce_all(cluster, 1, "orders", 5, start=5)
            await cluster.equal_logs("orders", 1, 2)

    run(scenario())


def test_kip_73_throttled_replicas_are_copied_slowly_until_the_limit_is_lifted(tmp_path: Path) -> None:
    async def scenario() -> None:
        lag = {"replica_lag_time_max_ms": "400"}
        async with running_cluster(tmp_path, 1, 2, replica_fetch_backoff_ms="50", **lag) as cluster:
            await cluster.create_topic("slow", (1, 2), follower_replication_throttled_replicas="0:2")
            await cluster.crash(2)
            for _ in range(20):
                assert (await cluster.produce(1, "slow", b"x" * 100_000, acks=1)).error_code == 0
            await cluster.in_sync("slow", 1)  # who has everything that is committed is not throttled
            restarted = await cluster.start(
                2, follower_replication_throttled_rate="1000", replica_fetch_max_bytes="1000"
            )
            await until(lambda: cluster.partition(2, "slow").log.log_end_offset > 0)
            await asyncio.sleep(0.5)
            assert cluster.partition(2, "slow").log.log_end_offset < 5
            restarted.replicas.throttles.follower.limit_bytes_per_s = 1 << 40
            await cluster.equal_logs("slow", 1, 2)

    run(scenario())


def test_an_idempotent_producer_loses_and_repeats_nothing_while_leaders_are_killed(tmp_path: Path) -> None:
    """With a stock client, whose retries may meet a former leader, or one that has the records already."""

    async def scenario() -> None:
        async with running_cluster(tmp_path, 1, 2, 3) as cluster:
            await cluster.create_topic("orders", (1, 2, 3), min_insync_replicas="2")
            servers = ",".join(f"127.0.0.1:{broker.port}" for broker in cluster.brokers.values())
            delivered: set[bytes] = set()
            failed: list[KafkaError] = []

            def on_delivery(error: KafkaError | None, message: Message) -> None:
                if error is None:
                    delivered.add(message.value() or b"")
                else:
                    failed.append(error)

            def produce() -> None:
                settings = {"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 1}
                producer = Producer({**settings, "topic.metadata.refresh.interval.ms": 200, "retry.backoff.ms": 20})
                for number in range(2000):
                    producer.produce("orders", b"%d" % number, partition=0, on_delivery=on_delivery)
                    producer.poll(0.001)
                producer.flush(15)

            producing = asyncio.create_task(asyncio.to_thread(produce))
            await until(lambda: len(delivered) > 200)
            await cluster.crash(1)
            await until(lambda: len(delivered) > 1000)
            await cluster.start(1)
            await cluster.in_sync("orders", 1, 2, 3)
            leader = cluster.image_of("orders").leader
            await cluster.crash(leader)
            await producing
            assert failed == []
            assert len(delivered) == 2000
            left = sorted(cluster.brokers)
            await cluster.equal_logs("orders", *left)
            values = [value for _, value in read_values(cluster.partition(left[0], "orders").log, 0)]
            assert values == [b"%d" % number for number in range(2000)]

    run(scenario())


async def delete_before(cluster: InProcessCluster, leader: int, offset: int, timeout_ms: int) -> tuple[int, int]:
    """The error code and the low watermark."""
    wanted = DeleteRecordsPartition(partition_index=0, offset=offset)
    request = DeleteRecordsRequest(
        topics=(DeleteRecordsTopic(name="orders", partitions=(wanted,)),), timeout_ms=timeout_ms
    )
    async with await cluster.connect(leader) as connection:
        response = await connection.request(request)
    assert isinstance(response, DeleteRecordsResponse)
    result = response.topics[0].partitions[0]
    return result.error_code, result.low_watermark


def test_records_are_deleted_when_they_are_gone_from_all_live_replicas(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_cluster(tmp_path, 1, 2, 3) as cluster:
            await cluster.create_topic("orders", (1, 2, 3))
            await produce_all(cluster, 1, "orders", 10)
            assert await delete_before(cluster, 1, 5, 15_000) == (ErrorCode.NONE, 5)
            assert {cluster.partition(each, "orders").log.log_start_offset for each in (1, 2, 3)} == {5}
            await cluster.brokers[3].replicas.fetchers.stop()
            assert await delete_before(cluster, 1, 8, 500) == (ErrorCode.REQUEST_TIMED_OUT, 5)
            assert cluster.partition(1, "orders").log.log_start_offset == 8
            waiting = asyncio.create_task(delete_before(cluster, 1, 9, 15_000))
            await until(lambda: bool(cluster.partition(1, "orders").low_watermark_waiters))
            await cluster.crash(3)
            assert await waiting == (ErrorCode.NONE, 9), "a broker that is down is not waited for"

    run(scenario())


def test_a_deletion_ends_when_its_leader_is_deposed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_cluster(tmp_path, 1, 2) as cluster:
            await cluster.create_topic("orders", (1, 2))
            await produce_all(cluster, 1, "orders", 3)
            await cluster.brokers[2].replicas.fetchers.stop()
            waiting = asyncio.create_task(delete_before(cluster, 1, 2, 15_000))
            await until(lambda: bool(cluster.partition(1, "orders").low_watermark_waiters))
            now = cluster.image_of("orders")
            epoch = LeaderEpoch(now.leader_epoch + 1)
            cluster.publish("orders", now._replace(leader=BrokerId(2), leader_epoch=epoch))
            assert await waiting == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)

    run(scenario())


def test_others_lead_what_was_in_a_log_directory_that_fails(tmp_path: Path) -> None:
    folders = [str(tmp_path / "1"), str(tmp_path / "1b")]

    async def scenario() -> None:
        async with running_cluster(tmp_path, 2) as cluster:
            failing = await cluster.start(1, log_dirs=",".join(folders))
            await cluster.create_topic("orders", (1, 2))
            await produce_all(cluster, 1, "orders", 3)
            await cluster.in_sync("orders", 1, 2)
            place = cluster.partition(1, "orders").log.directory.path
            await until(lambda: cluster.image_of("orders").directory_of(BrokerId(1)) is not None)
            failing.failures.log_directory_failed(StorageFailure(place, "the disk is gone"))
            await until(lambda: cluster.image_of("orders").leader == 2)
            await cluster.in_sync("orders", 2)
            assert (await cluster.produce(2, "orders", b"after")).base_offset == 3

    run(scenario())


def test_a_replica_that_leaves_a_failed_log_directory_may_come_back_to_the_broker(tmp_path: Path) -> None:
    folders = [str(tmp_path / "1b"), str(tmp_path / "1")]

    async def scenario() -> None:
        async with running_cluster(tmp_path, 2, 3) as cluster:
            failing = await cluster.start(1, log_dirs=",".join(folders))
            await cluster.create_topic("orders", (2, 1))
            await produce_all(cluster, 2, "orders", 3)
            await cluster.in_sync("orders", 1, 2)
            place = cluster.partition(1, "orders").log.directory.path
            await until(lambda: cluster.image_of("orders").directory_of(BrokerId(1)) is not None)
            failing.failures.log_directory_failed(StorageFailure(place, "the disk is gone"))
            await cluster.in_sync("orders", 2)
            await cluster.reassign("orders", 2, 3)
            await cluster.in_sync("orders", 2, 3)
            await until(lambda: "orders" not in failing.partitions.by_name)
            await cluster.reassign("orders", 2, 1)
            await cluster.in_sync("orders", 1, 2)
            back = cluster.partition(1, "orders").log
            assert back.directory.path != place
            assert read_values(back) == read_values(cluster.partition(2, "orders").log)

    run(scenario())


def test_a_followed_replica_moves_to_another_log_directory(tmp_path: Path) -> None:
    folders = [str(tmp_path / "2"), str(tmp_path / "2b")]

    async def scenario() -> None:
        async with running_cluster(tmp_path, 1) as cluster:
            follower = await cluster.start(2, log_dirs=",".join(folders))
            await cluster.create_topic("orders", (1, 2), segment_bytes="1048576")
            for number in range(10):
                await cluster.produce(1, "orders", batch=make_batch([bytes([number]) * 300_000]))
            partition = cluster.partition(2, "orders")
            target = next(path for path in folders if path != partition.log.directory.path)
            codes = await follower.moves.alter({partition.topic_partition: target})
            assert codes == {partition.topic_partition: ErrorCode.NONE}
            number = 10
            while partition.log.directory.path != target:
                await cluster.produce(1, "orders", batch=make_batch([b"value %d" % number]))
                number += 1
            await cluster.produce(1, "orders", batch=make_batch([b"after"]))
            leader = cluster.partition(1, "orders")
            await until(lambda: partition.log.log_end_offset == leader.log.log_end_offset)
            assert read_values(partition.log) == read_values(leader.log)
            await cluster.in_sync("orders", 1, 2)
            identifier = follower.logs.directory_id(target)
            await until(lambda: cluster.image_of("orders").directory_of(BrokerId(2)) == identifier)
            assert number > 10

    run(scenario())


def test_a_former_leader_truncates_also_the_copy_that_moves_to_another_log_directory(tmp_path: Path) -> None:
    folders = [str(tmp_path / "1"), str(tmp_path / "1b")]

    async def scenario() -> None:
        async with running_cluster(tmp_path, 2) as cluster:
            slow = {"replica_alter_log_dirs_io_max_bytes_per_second": "1"}
            former = await cluster.start(1, log_dirs=",".join(folders), **slow)
            await cluster.create_topic("orders", (1, 2))
            await produce_all(cluster, 1, "orders", 5)
            await cluster.brokers[2].replicas.fetchers.stop()
            for number in range(4):
                produced = await cluster.produce(1, "orders", batch=make_batch([bytes([number]) * 700_000]), acks=1)
                assert produced.error_code == 0
            partition = cluster.partition(1, "orders")
            target = next(path for path in folders if path != partition.log.directory.path)
            await former.moves.alter({partition.topic_partition: target})
            await until(lambda: any(each.log_end_offset > 5 for each in former.logs.futures.all))
            await cluster.crash(1)
            await until(lambda: cluster.partition(2, "orders").state.role is Role.LEADER)
            await produce_all(cluster, 2, "orders", 3, start=5)
            await cluster.start(1, log_dirs=",".join(folders))
            moved, leader = cluster.partition(1, "orders"), cluster.partition(2, "orders")
            await until(lambda: moved.log.directory.path == target)
            await cluster.in_sync("orders", 1, 2)
            assert read_values(moved.log) == read_values(leader.log)
            assert len(read_values(moved.log)) == 8

    run(scenario())
