"""Log directories that fail, are set aside, or come back, as requests and settings meet them."""

import errno
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.broker.server import Broker
from kaspar.metadata.events import (
    AlterConfigs,
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    DeleteTopics,
    ResourceType,
    TopicReference,
)
from kaspar.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from kaspar.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kaspar.storage import OsFiles
from kaspar.storage.segment import Segment
from tests.unit.broker.running import Client, create_topic, run, running, until
from tests.unit.replication.partitions import append


def names(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir()}


async def change_setting(broker: Broker, name: str, value: str) -> None:
    change = ConfigChange(ConfigResource(ResourceType.BROKER, "1"), (ConfigOperation.set(name, value),))
    (outcome,) = await broker.controller.submit(AlterConfigs((change,), False))
    assert outcome.outcome.error is ErrorCode.NONE, outcome.outcome.message


def test_a_disk_that_fails_a_look_up_by_time_fails_its_own_partitions_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with running(tmp_path / "a", tmp_path / "b") as broker:
            first, second = await create_topic(broker, "t", 2)
            append(first)
            append(second)
            real = Segment.largest_timestamp

            def largest_timestamp(segment: Segment, files: OsFiles) -> int:
                if segment in first.log.segments.all:
                    raise OSError(errno.EIO, "the disk is gone")
                return real(segment, files)

            monkeypatch.setattr(Segment, "largest_timestamp", largest_timestamp)
            client = Client(broker)
            wanted = tuple(ListOffsetsPartition(partition_index=index, timestamp=0) for index in (0, 1))
            topic = ListOffsetsTopic(name="t", partitions=wanted)
            client.send(ListOffsetsRequest(replica_id=-1, topics=(topic,)), version=7)
            answer = await client.answer(ListOffsetsResponse)
            codes = [partition.error_code for partition in answer.topics[0].partitions]
            assert codes == [ErrorCode.KAFKA_STORAGE_ERROR, 0]
            assert first.offline
            assert not second.offline

    run(scenario())


def test_a_directory_that_does_not_tell_its_space_is_one_error_in_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with running(tmp_path / "a", tmp_path / "b") as broker:
            real = OsFiles.space

            def space(files: OsFiles, path: str) -> tuple[int, int]:
                if path.endswith("a"):
                    raise OSError(errno.EIO, "the disk is gone")
                return real(files, path)

            monkeypatch.setattr(OsFiles, "space", space)
            client = Client(broker)
            client.send(DescribeLogDirsRequest(topics=None), version=4)
            answer = await client.answer(DescribeLogDirsResponse)
            assert [result.error_code for result in answer.results] == [ErrorCode.KAFKA_STORAGE_ERROR, 0]

    run(scenario())


def test_a_directory_cordoned_while_running_gets_no_new_partition(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path / "a", tmp_path / "b") as broker:
            await change_setting(broker, "cordoned.log.dirs", str(tmp_path / "a"))
            partitions = await create_topic(broker, "t", 4)
            assert {partition.log.directory.path for partition in partitions} == {str(tmp_path / "b")}

    run(scenario())


def test_a_topic_deleted_while_a_directory_is_offline_is_removed_when_it_is_back(tmp_path: Path) -> None:
    async def scenario() -> None:
        folders = (tmp_path / "a", tmp_path / "b")
        async with running(*folders) as broker:
            first, _ = await create_topic(broker, "t", 2)
            folder = Path(first.log.folder)
            broker.log_directory_failed(first.log.directory.take_offline("the disk is gone"))
            await broker.controller.submit(DeleteTopics((TopicReference("t"),)))
            assert names(folder.parent) >= {folder.name}
        async with running(*folders) as broker:
            await until(lambda: not broker.image.deleted_topics)
            assert folder.name not in names(folder.parent)
            await create_topic(broker, "t", 2)

    run(scenario())


@pytest.mark.parametrize("partitions", [1, 3])
def test_topics_share_the_settings_that_they_all_have(tmp_path: Path, partitions: int) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            plain = await create_topic(broker, "plain", partitions) + await create_topic(broker, "other")
            (own,) = await create_topic(broker, "own", retention_ms="5000")
            await change_setting(broker, "log.segment.bytes", "2000000")
            assert len({id(partition.log.config) for partition in plain}) == 1
            assert plain[0].log.config.segment_bytes == 2_000_000
            assert (own.log.config.segment_bytes, own.log.config.retention_ms) == (2_000_000, 5000)

    run(scenario())
