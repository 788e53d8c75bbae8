"""A follower's truncation that a full disk has stopped half-way: nothing is appended before it is finished."""

import errno
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import LeaderEpoch
from kaspar.replication.state import Leadership, Role
from kaspar.storage.local_log import LocalLog
from kaspar.storage.segments.segment import Segment
from tests.unit.broker.replication.test_leader import ME, OTHER, THIRD, decide
from tests.unit.broker.running import Client, create_topic, run, running, until
from tests.unit.storage.logs import make_batch, read_values


def test_a_replica_that_leads_before_its_truncation_is_finished_takes_no_records_until_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t")
            client = Client(broker)
            for value in (b"kept", b"removed", b"removed, too"):
                client.produce(("t", 0, make_batch([value])), acks=1)
                await client.produced()
            decide(partition, OTHER, ME, leader=OTHER, epoch=9)

            def full(*arguments: object) -> None:
                raise OSError(errno.ENOSPC, "No space left on device")

            monkeypatch.setattr(Segment, "cut", full)
            assert broker.logs.truncate_to({partition.topic_partition: 1}, now_ms=0)
            now = partition.state.leadership
            decided = Leadership(ME, LeaderEpoch(10), now.partition_epoch + 1, (ME, OTHER, THIRD), (ME,))
            await broker.replicas.lead_or_follow([(partition, decided)])
            client.produce(("t", 0, make_batch([b"too early"])), acks=1)
            assert (await client.produced())[0].error_code == (ErrorCode.KAFKA_STORAGE_ERROR)
            monkeypatch.undo()
            await until(lambda: not partition.log.truncating)
            assert not broker.replicas.has_half_truncated
            client.produce(("t", 0, make_batch([b"new"])), acks=1)
            assert (await client.produced())[0].error_code == ErrorCode.NONE
            assert read_values(partition.log) == [(0, b"kept"), (1, b"new")]

    run(scenario())


def test_a_leader_with_an_unfinished_truncation_serves_no_reads_and_keeps_its_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its segments are renamed, and the one that replaces them could not be created."""

    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t")
            client = Client(broker)
            client.produce(("t", 0, make_batch([b"removed"])), acks=1)
            await client.produced()
            decide(partition, OTHER, ME, leader=OTHER, epoch=9)

            def full(*arguments: object) -> None:
                raise OSError(errno.ENOSPC, "No space left on device")

            monkeypatch.setattr(LocalLog, "_new_segment", full)
            assert broker.logs.truncate_fully_and_start_at({partition.topic_partition: 1}, now_ms=0)
            now = partition.state.leadership
            decided = Leadership(ME, LeaderEpoch(10), now.partition_epoch + 1, (ME, OTHER, THIRD), (ME,))
            await broker.replicas.lead_or_follow([(partition, decided)])
            assert partition.state.role is Role.LEADER
            client.fetch(("t", 0, 0))
            (topic,) = (await client.fetched()).responses
            assert topic.partitions[0].error_code == ErrorCode.OFFSET_NOT_AVAILABLE
            with pytest.raises(Refused) as refusal:
                partition.log.read(0, 1000, 1)
            assert refusal.value.code is ErrorCode.OFFSET_NOT_AVAILABLE
            assert not partition.offline
            monkeypatch.undo()
            await until(lambda: not partition.log.truncating)
            client.produce(("t", 0, make_batch([b"new"])), acks=1)
            assert (await client.produced())[0].error_code == ErrorCode.NONE
            assert read_values(partition.log) == [(1, b"new")]

    run(scenario())
