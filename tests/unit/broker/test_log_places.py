"""Directories that are empty, swapped, copied, removed or new, and logs that are not where they were."""

import asyncio
import errno
import json
import re
import shutil
import sqlite3
import threading
import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode, KasparError
from kaspar.base.ids import TopicPartition, random_uuid
from kaspar.broker.server import Broker
from kaspar.controller.events import DeleteTopics, TopicReference
from kaspar.replication.partition import Partition
from kaspar.storage import Log, LogManager, OsFiles
from kaspar.storage.directories.folder_metadata import read_meta_properties, write_meta_properties
from kaspar.tools import storage
from tests.unit.broker.running import Client, create_topic, run, running, until
from tests.unit.broker.test_directories import change_topic
from tests.unit.replication.partitions import append
from tests.unit.storage.logs import make_batch


class Disks:
    """Two log directories, and a topic with a record in each of two partitions."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.folders = (path / "a", path / "b")
        self.settings_file = path / "server.properties"
        self.settings_file.write_text(f"node.id=1\nlog.dirs={','.join(map(str, self.folders))}\n")

    async def fill(self) -> None:
        async with running(*self.folders) as broker:
            for partition in await create_topic(broker, "t", 2):
                append(partition)
            await until(lambda: is_known(broker, "t"))

    def unmount(self) -> None:
        self.folders[1].rename(self.path / "volume")
        self.folders[1].mkdir()

    def mount(self) -> None:
        shutil.rmtree(self.folders[1])
        (self.path / "volume").rename(self.folders[1])

    async def format(self, *more: str) -> int:
        return await asyncio.to_thread(storage.main, ["format", "-c", str(self.settings_file), *more])


def is_known(broker: Broker, topic: str) -> bool:
    """Whether the cluster knows where every log of the topic is."""
    return all(partition.directory_of(broker.broker_id) for partition in broker.image.topics[topic].partitions)


def logs_of(broker: Broker, topic: str = "t") -> dict[int, int]:
    """Where the logs end, by partition."""
    hosted = broker.partitions.by_name[topic]
    return {index: partition.log.log_end_offset for index, partition in sorted(hosted.partitions.items())}


def epochs_of(broker: Broker) -> list[int]:
    return [partition.leader_epoch for partition in broker.image.topics["t"].partitions]


async def error_of(broker: Broker, partition: int) -> int:
    client = Client(broker)
    client.produce(("t", partition, make_batch()))
    (response,) = await client.produced()
    return response.error_code


@pytest.fixture
def disks(tmp_path: Path) -> Disks:
    return Disks(tmp_path)


def test_an_empty_directory_is_not_taken_for_a_new_one(disks: Disks) -> None:
    async def scenario() -> None:
        await disks.fill()
        disks.unmount()
        async with running(*disks.folders) as broker:
            assert logs_of(broker) == {0: 1}
            assert "mount it and start the broker again" in str(broker.logs.directories[1].offline)
            assert [await error_of(broker, index) for index in (0, 1)] == [0, ErrorCode.KAFKA_STORAGE_ERROR]
            assert list(disks.folders[1].iterdir()) == [disks.folders[1] / ".lock"]
            (new,) = await create_topic(broker, "new")
            assert new.log.directory.path == str(disks.folders[0])
            for index in (0, 1):
                await change_topic(broker, "t", "unclean.leader.election.enable", ("true", "false")[index])
                assert 1 not in logs_of(broker), "it is away, and not lost"
        disks.mount()
        async with running(*disks.folders) as broker:
            assert logs_of(broker) == {0: 2, 1: 1}
            assert await error_of(broker, 1) == 0

    run(scenario())


def test_folders_of_before_are_adopted_but_an_empty_one_among_them_is_not(disks: Disks) -> None:
    """The first start of a program that keeps the directories' ids in the store."""

    async def scenario() -> None:
        await disks.fill()
        forget_directories(disks)
        disks.unmount()
        async with running(*disks.folders) as broker:
            assert logs_of(broker) == {0: 1}
        disks.mount()
        meta = disks.folders[1] / "meta.properties"
        meta.write_text("".join(line for line in meta.read_text().splitlines(True) if "directory.id" not in line))
        async with running(*disks.folders) as broker:
            assert logs_of(broker) == {0: 1, 1: 1}
            await until(lambda: is_known(broker, "t"))
            assert "directory.id" in meta.read_text()
        async with running(*disks.folders) as broker:
            assert logs_of(broker) == {0: 1, 1: 1}
            assert not broker.places.away

    run(scenario())


def test_an_empty_directory_at_the_first_start_is_missed_when_it_is_no_longer_listed(disks: Disks) -> None:
    async def scenario() -> None:
        await disks.fill()
        forget_directories(disks)
        disks.unmount()
        async with running(*disks.folders) as broker:
            assert logs_of(broker) == {0: 1}
        for _ in range(2):
            async with running(disks.folders[0]) as broker:
                assert [await error_of(broker, index) for index in (0, 1)] == [0, ErrorCode.KAFKA_STORAGE_ERROR]
        disks.mount()
        async with running(*disks.folders) as broker:
            assert logs_of(broker) == {0: 3, 1: 1}

    run(scenario())


def forget_directories(disks: Disks) -> None:
    """The store as it was before it knew of directories."""
    connection = sqlite3.connect(disks.folders[0] / "metadata.db")
    connection.execute("DELETE FROM node WHERE path LIKE '/brokers/directories%'")
    (value,) = connection.execute("SELECT value FROM node WHERE path = '/topics/t'").fetchone()
    topic = json.loads(value)
    topic["partitions"] = [row[:5] for row in topic["partitions"]]
    connection.execute("UPDATE node SET value = ? WHERE path = '/topics/t'", (json.dumps(topic).encode(),))
    connection.commit()
    connection.close()


def test_a_new_directory_is_used_once_it_is_formatted(disks: Disks, capsys: pytest.CaptureFixture[str]) -> None:
    async def scenario() -> None:
        async with running(disks.folders[0]) as broker:
            await create_topic(broker, "t")
        assert await disks.format() == 1
        assert "already formatted" in capsys.readouterr().err
        assert await disks.format("-t", "4_1iXmciR7-jjUdtHqGQGg", "--ignore-formatted") == 1
        assert "belongs to the cluster" in capsys.readouterr().err
        assert await disks.format("--ignore-formatted") == 0
        assert f"Formatted {disks.folders[1]}" in capsys.readouterr().out
        async with running(*disks.folders) as broker:
            (new,) = await create_topic(broker, "new")
            assert new.log.directory.path == str(disks.folders[1])
            assert len(broker.image.brokers[broker.broker_id].log_dirs) == 2
        assert await disks.format("--ignore-formatted") == 0
        assert capsys.readouterr().out == "All of the log directories are already formatted.\n"

    run(scenario())


def test_directories_may_be_listed_in_another_order_or_swapped(disks: Disks) -> None:
    async def scenario() -> None:
        await disks.fill()
        first, second = disks.folders
        async with running(second, first) as broker:
            assert logs_of(broker) == {0: 1, 1: 1}
        first.rename(disks.path / "between")
        second.rename(first)
        (disks.path / "between").rename(second)
        async with running(first, second) as broker:
            assert logs_of(broker) == {0: 1, 1: 1}
            assert [await error_of(broker, index) for index in (0, 1)] == [0, 0]

    run(scenario())


def test_a_copied_directory_is_refused(disks: Disks) -> None:
    async def scenario() -> None:
        await disks.fill()
        shutil.copytree(disks.folders[1], disks.path / "copy")
        with pytest.raises(KasparError, match="one is a copy of the other"):
            async with running(*disks.folders, disks.path / "copy"):
                pass
        async with running(*disks.folders) as broker:
            assert logs_of(broker) == {0: 1, 1: 1}

    run(scenario())


def test_a_directory_that_the_cluster_does_not_know_is_used_only_if_an_operator_says_so(disks: Disks) -> None:
    async def scenario() -> None:
        await disks.fill()
        files, folder = OsFiles(), str(disks.folders[1])
        meta = read_meta_properties(files, folder)
        assert meta is not None
        write_meta_properties(files, folder, replace(meta, directory_id=random_uuid()))
        async with running(*disks.folders) as broker:
            assert logs_of(broker) == {0: 1}
        assert await disks.format("--ignore-formatted") == 0
        async with running(*disks.folders) as broker:
            assert logs_of(broker) == {0: 1, 1: 1}

    run(scenario())


def test_a_broker_does_not_begin_without_its_metadata_store(disks: Disks) -> None:
    async def scenario() -> None:
        await disks.fill()
        disks.folders[0].rename(disks.path / "volume")
        with pytest.raises(KasparError, match="there is no metadata store"):
            async with running(*disks.folders):
                pass
        (disks.path / "volume" / "metadata.db").rename(disks.path / "metadata.db")
        shutil.rmtree(disks.folders[0])
        (disks.path / "volume").rename(disks.folders[0])
        shutil.copy(disks.path / "metadata.db", disks.folders[0])
        shutil.copy(disks.path / "metadata.db", disks.folders[1])
        with pytest.raises(KasparError, match="there are metadata stores in"):
            async with running(*disks.folders):
                pass
        with pytest.raises(KasparError, match=r"metadata\.log\.dir is"):
            async with running(*disks.folders, metadata_log_dir=str(disks.path / "elsewhere")):
                pass

    run(scenario())


@pytest.mark.parametrize(
    ("way", "logged"),
    [
        ("the folder is removed", "it was in .*, and is not in any log directory now"),
        ("the directory is no longer listed", "which is no longer in log.dirs"),
        ("the disk is replaced", "which was replaced at .* by a new one"),
    ],
)
def test_a_lost_log_is_recreated_only_if_it_is_given_up_and_in_a_new_epoch(
    disks: Disks, way: str, logged: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        await disks.fill()
        folders: tuple[Path, ...] = disks.folders
        match way:
            case "the folder is removed":
                shutil.rmtree(disks.folders[1] / "t-1")
            case "the directory is no longer listed":
                folders = disks.folders[:1]
            case _:
                shutil.rmtree(disks.folders[1])
                disks.folders[1].mkdir()
                assert await disks.format("--ignore-formatted") == 0
        for _ in range(2):
            async with running(*folders) as broker:
                assert [await error_of(broker, index) for index in (0, 1)] == [0, ErrorCode.KAFKA_STORAGE_ERROR]
                await change_topic(broker, "t", "retention.ms", "10000000")
                assert logs_of(broker).keys() == {0}
        assert any(re.search(logged, str(vars(record))) for record in caplog.records)
        async with running(*folders) as broker:
            before = epochs_of(broker)
            await change_topic(broker, "t", "unclean.leader.election.enable", "true")
            await until(lambda: logs_of(broker).get(1) == 0)
            assert epochs_of(broker) == [before[0], before[1] + 1]
            assert await error_of(broker, 1) == 0
            assert leader_epochs(broker.partitions.by_name["t"].partitions[1]) == [before[1] + 1]
            await until(lambda: is_known(broker, "t"))
        async with running(*folders) as broker:
            assert logs_of(broker)[1] == 1
            assert not broker.places.away

    run(scenario())


def test_a_log_that_its_checkpoint_names_is_lost_even_if_the_store_does_not_know_where_it_was(disks: Disks) -> None:
    """The broker was stopped, or killed, before the controller had noted it."""

    async def scenario() -> None:
        await disks.fill()
        forget_directories(disks)
        shutil.rmtree(disks.folders[1] / "t-1")
        async with running(*disks.folders) as broker:
            assert [await error_of(broker, index) for index in (0, 1)] == [0, ErrorCode.KAFKA_STORAGE_ERROR]

    run(scenario())


def test_a_stop_notes_first_where_new_logs_are(disks: Disks) -> None:
    async def scenario() -> None:
        async with running(*disks.folders) as broker:
            await create_topic(broker, "t", 2)
        assert is_known(broker, "t")

    run(scenario())


def leader_epochs(partition: Partition) -> list[int]:
    return [entry.epoch for entry in partition.log.leader_epochs.entries]


def test_a_lost_log_that_was_given_up_and_comes_back_is_set_aside(disks: Disks) -> None:
    async def scenario() -> None:
        await disks.fill()
        async with running(disks.folders[0]) as broker:
            await change_topic(broker, "t", "unclean.leader.election.enable", "true")
            await until(lambda: logs_of(broker).get(1) == 0)
            await until(lambda: is_known(broker, "t"))
        await disks.format("--ignore-formatted")
        async with running(*disks.folders) as broker:
            assert logs_of(broker)[1] == 0
            assert len(list(disks.folders[1].glob("t-1.*-stray"))) == 1

    run(scenario())


def test_a_folder_that_was_moved_to_another_directory_is_found(disks: Disks) -> None:
    async def scenario() -> None:
        await disks.fill()
        (disks.folders[1] / "t-1").rename(disks.folders[0] / "t-1")
        async with running(*disks.folders) as broker:
            assert logs_of(broker) == {0: 1, 1: 1}
            here = broker.logs.directory_id(str(disks.folders[0]))
            topic = broker.image.topics["t"]
            await until(lambda: broker.image.topics["t"].partitions[1].directory_of(broker.broker_id) == here)
            assert topic.partitions[1].leader_epoch == broker.image.topics["t"].partitions[1].leader_epoch

    run(scenario())


def test_a_folder_left_from_a_move_is_not_used_while_the_directory_of_the_log_is_not_mounted(disks: Disks) -> None:
    async def scenario() -> None:
        await disks.fill()
        shutil.copytree(disks.folders[1] / "t-1", disks.folders[0] / "t-1")
        disks.unmount()
        async with running(*disks.folders) as broker:
            there = broker.image.topics["t"].partitions[1].directory_of(broker.broker_id)
            assert logs_of(broker) == {0: 1}
            assert await error_of(broker, 1) == ErrorCode.KAFKA_STORAGE_ERROR
            await broker.places.finish()
            assert broker.image.topics["t"].partitions[1].directory_of(broker.broker_id) == there

    run(scenario())


def test_a_topic_deleted_while_a_directory_is_not_listed_is_not_forgotten(disks: Disks) -> None:
    async def scenario() -> None:
        await disks.fill()
        async with running(disks.folders[0]) as broker:
            await broker.controller.submit(DeleteTopics((TopicReference("t"),)))
            await create_topic(broker, "t", 2)
            assert broker.image.deleted_topics
            await until(lambda: is_known(broker, "t"))
        async with running(*disks.folders) as broker:
            await until(lambda: not broker.image.deleted_topics)
            assert logs_of(broker) == {0: 0, 1: 0}
            assert broker.logs.get(TopicPartition("t", 1)) is not None

    run(scenario())


def test_a_directory_that_fails_during_a_start_is_not_replaced_by_new_logs(
    disks: Disks, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        loop, adopt = asyncio.get_running_loop(), LogManager.adopt

        def fail(logs: LogManager, one: Log, topic_id: uuid.UUID) -> None:
            """The event loop hears of it before the thread has come to the next partition."""
            failure = one.directory.fail(OSError(errno.EIO, "broken"), "writing the topic id")
            given_up = threading.Event()
            loop.call_soon_threadsafe(logs.take_offline, one.directory.path, "broken")
            loop.call_soon_threadsafe(given_up.set)
            given_up.wait()
            raise failure

        async with running(*disks.folders) as broker:
            for partition in await create_topic(broker, "t", 4):
                append(partition)
        forget_directories(disks)
        (disks.folders[1] / "t-1" / "partition.metadata").unlink()
        monkeypatch.setattr(LogManager, "adopt", fail)
        async with running(*disks.folders) as broker:
            await change_topic(broker, "t", "retention.ms", "10000000")
            errors = [await error_of(broker, index) for index in range(4)]
            assert errors == [0, ErrorCode.KAFKA_STORAGE_ERROR, 0, ErrorCode.KAFKA_STORAGE_ERROR]
        monkeypatch.setattr(LogManager, "adopt", adopt)
        async with running(*disks.folders) as broker:
            assert logs_of(broker) == {0: 2, 1: 1, 2: 2, 3: 1}

    run(scenario())
