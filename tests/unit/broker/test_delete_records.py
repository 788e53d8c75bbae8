"""DeleteRecords: what was said to be deleted stays so."""

import errno
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from kaspar.storage import checkpoints
from tests.unit.broker.running import Client, create_topic, run, running
from tests.unit.replication.partitions import append
from tests.unit.storage.logs import make_batch


async def delete_before(client: Client, offset: int) -> DeleteRecordsPartitionResult:
    partition = DeleteRecordsPartition(partition_index=0, offset=offset)
    topic = DeleteRecordsTopic(name="t", partitions=(partition,))
    client.send(DeleteRecordsRequest(topics=(topic,), timeout_ms=1000), version=2)
    return (await client.answer(DeleteRecordsResponse)).topics[0].partitions[0]


def test_where_the_log_begins_is_written_down_before_the_answer(tmp_path: Path) -> None:
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


def test_a_full_disk_keeps_no_record_from_being_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t")
            append(partition)

            def full(*arguments: object) -> None:
                raise OSError(errno.ENOSPC, "No space left on device")

            monkeypatch.setattr(checkpoints, "write_offsets", full)
            assert (await delete_before(Client(broker), 1)).low_watermark == 1
            monkeypatch.undo()

    run(scenario())
