"""Log directories that fail, are set aside, or come back, as requests and settings meet them."""

import errno
import os
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.broker.server import Broker
from kaspar.controller.events import (
    AlterConfigs,
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    CreateTopics,
    DeleteTopics,
    NewTopic,
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
from kaspar.storage.segments.segment import Segment
from tests.unit.broker.running import Client, create_topic, run, running, until
from tests.unit.replication.partitions import append


def names(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir()}


async def change_setting(broker: Broker, name: str, value: str) -> None:
    await change(broker, ConfigResource(ResourceType.BROKER, "1"), name, value)


async def change_topic(broker: Broker, topic: str, name: str, value: str) -> None:
    await change(broker, ConfigResource(ResourceType.TOPIC, topic), name, value)


async def change(broker: Broker, resource: ConfigResource, name: str, value: str) -> None:
    change = ConfigChange(resource, (ConfigOperation.set(name, value),))
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
            response = await client.response(ListOffsetsResponse)
            codes = [partition.error_code for partition in response.topics[0].partitions]
            assert codes == [ErrorCode.KAFKA_STORAGE_ERROR, 0]
            assert first.offline
            assert not second.offline

    run(scenario())


def test_a_directory_of_unknown_size_is_one_error_in_the_response(
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
            response = await client.response(DescribeLogDirsResponse)
            assert [result.error_code for result in response.results] == [ErrorCode.KAFKA_STORAGE_ERROR, 0]

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
            broker.failures.log_directory_failed(first.log.directory.take_offline("the disk is gone"))
            await broker.controller.submit(DeleteTopics((TopicReference("t"),)))
            assert names(folder.parent) >= {folder.name}
        async with running(*folders) as broker:
            await until(lambda: not broker.image.deleted_topics)
            assert folder.name not in names(folder.parent)
            await create_topic(broker, "t", 2)

    run(scenario())


@pytest.mark.parametrize("restarted", [False, True])
def test_a_topic_made_again_after_a_deletion_that_found_no_space_begins_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, restarted: bool
) -> None:
    is_full = [False]

    def rename(files: OsFiles, old: str, new: str) -> None:
        if is_full[0] and new.endswith("-delete"):
            raise OSError(errno.ENOSPC, "the disk is full")
        os.rename(old, new)

    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (old,) = await create_topic(broker, "t")
            append(old)
            is_full[0] = True
            await broker.controller.submit(DeleteTopics((TopicReference("t"),)))
            await broker.controller.submit(CreateTopics((NewTopic("t", 1),)))
            assert broker.image.deleted_topics, "it is not forgotten before its folder is renamed"
            hosted = broker.partitions.by_name["t"]
            assert hosted.offline == {0}
            is_full[0] = False
            if not restarted:
                await until(lambda: not hosted.offline)
                await until(lambda: not broker.image.deleted_topics)
                assert hosted.partitions[0].log.log_end_offset == 0
        async with running(tmp_path) as broker:
            (log,) = broker.logs.logs.values()
            assert (log.log_start_offset, log.log_end_offset) == (0, 0)
            assert not broker.partitions.by_name["t"].offline
            await until(lambda: not broker.image.deleted_topics)

    monkeypatch.setattr(OsFiles, "rename", rename)
    run(scenario())


def test_a_change_of_settings_makes_no_new_log_for_one_that_is_in_an_offline_directory(tmp_path: Path) -> None:
    async def scenario() -> None:
        folders = (tmp_path / "a", tmp_path / "b")
        async with running(*folders) as broker:
            first, second = await create_topic(broker, "t", 2)
            append(second)
            assert Path(second.log.directory.path) == folders[1]
        folders[1].rename(tmp_path / "away")
        folders[1].write_text("no folder can be made here")
        async with running(*folders) as broker:
            await change_topic(broker, "t", "retention.ms", "1000000")
            hosted = broker.partitions.by_name["t"]
            assert (set(hosted.partitions), hosted.offline) == ({first.topic_partition.partition}, {1})
        folders[1].unlink()
        (tmp_path / "away").rename(folders[1])
        async with running(*folders) as broker:
            assert broker.partitions.by_name["t"].partitions[1].log.log_end_offset == 1

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
