"""DeleteRecords: what was said to be deleted stays so."""

import asyncio
import errno
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import TopicPartition
from kaspar.broker.upkeep import MOST_SEGMENTS_AT_ONCE
from kaspar.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from kaspar.storage import Files
from kaspar.storage.disk import checkpoints
from kaspar.storage.local_log import LocalLog
from kaspar.storage.segments.segment import Segment
from tests.unit.broker.running import Client, create_topic, run, running
from tests.unit.replication.partitions import append
from tests.unit.storage.logs import NOW_MS, make_batch


async def delete_before(client: Client, offset: int) -> DeleteRecordsPartitionResult:
    partition = DeleteRecordsPartition(partition_index=0, offset=offset)
    topic = DeleteRecordsTopic(name="t", partitions=(partition,))
    client.send(DeleteRecordsRequest(topics=(topic,), timeout_ms=1000), version=2)
    return (await client.response(DeleteRecordsResponse)).topics[0].partitions[0]


def test_the_log_start_offset_is_stored_before_the_response(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t")
            append(partition, make_batch([b"a", b"b", b"c"]))
            result = await delete_before(Client(broker), 2)
            assert (result.error_code, result.low_watermark) == (ErrorCode.NONE, 2)
            assert (tmp_path / "log-start-offset-checkpoint").read_text() == "0\n1\nt 0 2\n"

    run(scenario())


def test_records_of_a_topic_that_is_only_compacted_cannot_be_deleted(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t", cleanup_policy="compact")
            append(partition)
            client = Client(broker)
            assert (await delete_before(client, 1)).error_code == ErrorCode.POLICY_VIOLATION
            assert partition.log.log_start_offset == 0

    run(scenario())


def test_what_could_not_be_written_down_for_want_of_space_is_gone_but_not_said_to_stay_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t")
            append(partition)
            client = Client(broker)

            def full(*arguments: object) -> None:
                raise OSError(errno.ENOSPC, "No space left on device")

            monkeypatch.setattr(checkpoints, "write_offsets", full)
            result = await delete_before(client, 1)
            assert (result.error_code, result.low_watermark) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
            assert partition.log.log_start_offset == 1
            assert not partition.offline
            monkeypatch.undo()
            result = await delete_before(client, 1)
            assert (result.error_code, result.low_watermark) == (ErrorCode.NONE, 1), "there is room again"

    run(scenario())


def test_a_directory_that_fails_keeps_no_other_from_being_written_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with running(tmp_path / "bad", tmp_path / "good") as broker:
            partitions = await create_topic(broker, "t", 2)
            for partition in partitions:
                append(partition)
            bad, good = sorted(partitions, key=lambda one: one.log.directory.path)
            real = checkpoints.write_offsets

            def write(files: Files, folder: str, name: str, offsets: Mapping[TopicPartition, int]) -> None:
                if folder == bad.log.directory.path:
                    raise OSError(errno.EIO, "Input/output error")
                real(files, folder, name, offsets)

            monkeypatch.setattr(checkpoints, "write_offsets", write)
            wanted = tuple(DeleteRecordsPartition(partition_index=index, offset=1) for index in (0, 1))
            client = Client(broker)
            client.send(
                DeleteRecordsRequest(topics=(DeleteRecordsTopic(name="t", partitions=wanted),), timeout_ms=1000),
                version=2,
            )
            results = (await client.response(DeleteRecordsResponse)).topics[0].partitions
            errors = {result.partition_index: result.error_code for result in results}
            assert errors[bad.topic_partition.partition] == ErrorCode.KAFKA_STORAGE_ERROR
            assert errors[good.topic_partition.partition] == ErrorCode.NONE
            checkpoint = (tmp_path / "good" / "log-start-offset-checkpoint").read_text()
            assert f"{good.topic_partition.topic} {good.topic_partition.partition} 1" in checkpoint

    run(scenario())


def test_many_segments_go_in_steps_so_that_the_loop_has_time_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t")
            log = partition.log
            count = 2 * MOST_SEGMENTS_AT_ONCE + 5
            for _ in range(count):
                append(partition)
                log.roll(now_ms=NOW_MS)
            append(partition)
            real = LocalLog._delete_files
            deleted = Counter[int]()
            turns = 0

            def delete_files(log: LocalLog, segment: Segment) -> None:
                deleted[turns] += 1
                real(log, segment)

            def turn() -> None:
                nonlocal turns
                turns += 1
                asyncio.get_running_loop().call_soon(turn)

            monkeypatch.setattr(LocalLog, "_delete_files", delete_files)
            turn()
            assert (await delete_before(Client(broker), count)).low_watermark == count
            assert log.segments.base_offsets == (count,)
            assert deleted.total() == count
            assert max(deleted.values()) == MOST_SEGMENTS_AT_ONCE

    run(scenario())
