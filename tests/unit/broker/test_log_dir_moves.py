"""AlterReplicaLogDirs on a whole broker: replicas move between its log directories while clients read and write."""

import asyncio
import errno
import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import Offset
from kaspar.broker import log_dir_moves
from kaspar.broker.server import Broker
from kaspar.controller.events import DeleteTopics, TopicReference
from kaspar.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from kaspar.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from kaspar.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from kaspar.replication.partition import Partition
from kaspar.storage import Log
from kaspar.storage.segments.segment import Segment
from tests.unit.broker.running import Client, create_topic, run, running, until
from tests.unit.broker.test_directories import change_setting
from tests.unit.replication.partitions import append
from tests.unit.storage.logs import make_batch, read_values


async def alter(client: Client, path: str | Path, topic: str, *partitions: int) -> dict[int, ErrorCode]:
    topics = (AlterReplicaLogDirTopic(name=topic, partitions=partitions),)
    client.send(AlterReplicaLogDirsRequest(dirs=(AlterReplicaLogDir(path=str(path), topics=topics),)), version=2)
    response = await client.response(AlterReplicaLogDirsResponse)
    return {each.partition_index: ErrorCode(each.error_code) for one in response.results for each in one.partitions}


async def described(client: Client) -> Mapping[str, list[DescribeLogDirsPartition]]:
    client.send(DescribeLogDirsRequest(topics=None), version=4)
    response = await client.response(DescribeLogDirsResponse)
    return {
        result.log_dir: [partition for topic in result.topics for partition in topic.partitions]
        for result in response.results
    }


def other(partition: Partition, *folders: Path) -> Path:
    return next(folder for folder in folders if str(folder) != partition.log.directory.path)


def is_in(partition: Partition, folder: Path) -> bool:
    return partition.log.directory.path == str(folder)


async def throttle(broker: Broker, rate: int) -> None:
    """The first step is copied before the rate is known."""
    await change_setting(broker, "replica.alter.log.dirs.io.max.bytes.per.second", str(rate))


def fill(partition: Partition, megabytes: int) -> None:
    for _ in range(megabytes):
        append(partition, make_batch([os.urandom(1 << 10)] * (1 << 9)))
        append(partition, make_batch([os.urandom(1 << 10)] * (1 << 9)))


def test_a_led_partition_moves_while_it_is_written_to(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"

    async def scenario() -> None:
        async with running(a, b) as broker:
            (partition,) = await create_topic(broker, "t")
            fill(partition, 3)
            target = other(partition, a, b)
            client, writer = Client(broker), Client(broker)
            assert await alter(client, target, "t", 0) == {0: ErrorCode.NONE}
            written = 0
            while not is_in(partition, target):
                writer.produce(("t", 0, make_batch([b"meanwhile"])))
                (produced,) = await writer.produced()
                assert produced.error_code == ErrorCode.NONE
                written += 1
                await asyncio.sleep(0)  # a client without a socket does not wait
            writer.produce(("t", 0, make_batch([b"after"])))
            (produced,) = await writer.produced()
            assert produced.error_code == ErrorCode.NONE
            assert partition.log.log_end_offset == 3 * 1024 + written + 1
            assert [value for _, value in read_values(partition.log)][-written - 1 :] == [
                *[b"meanwhile"] * written,
                b"after",
            ]
            identifier = broker.logs.directory_id(str(target))
            await until(lambda: broker.image.topics["t"].partitions[0].directory_of(broker.broker_id) == identifier)
            await until(lambda: not any((folder / "t-0").exists() for folder in (a, b) if folder != target))
            assert await alter(client, target, "t", 0) == {0: ErrorCode.NONE}, "it is there already"
        async with running(a, b) as broker:
            (partition,) = broker.partitions
            assert is_in(partition, target)
            assert partition.log.log_end_offset == 3 * 1024 + written + 1

    run(scenario())


def test_the_loop_never_waits_for_the_sync_of_a_copy_and_the_move_ends_though_the_log_is_synced_all_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = tmp_path / "a", tmp_path / "b"

    async def scenario() -> None:
        async with running(a, b) as broker:
            (partition,) = await create_topic(broker, "t", flush_messages="1")
            target = other(partition, a, b)
            on_loop: list[str] = []
            real = Log.flush

            def flush(log: Log, up_to: int | None = None) -> Offset:
                if threading.current_thread() is threading.main_thread():
                    on_loop.append(log.folder)
                if log.folder.endswith("-future"):
                    time.sleep(0.03)  # in a thread: the log is synced several times meanwhile
                return real(log, up_to)

            monkeypatch.setattr(Log, "flush", flush)
            client, writer = Client(broker), Client(broker)
            assert await alter(client, target, "t", 0) == {0: ErrorCode.NONE}
            written = 0
            while not is_in(partition, target):
                writer.produce(("t", 0, make_batch([b"meanwhile"])))
                (produced,) = await writer.produced()
                assert produced.error_code == ErrorCode.NONE
                written += 1
            assert not on_loop
            writer.produce(("t", 0, make_batch([b"after"])))
            (produced,) = await writer.produced()
            assert (produced.error_code, produced.base_offset) == (ErrorCode.NONE, written)
            monkeypatch.undo()

    run(scenario())


def test_a_waiting_reader_gets_what_is_written_after_a_move(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"

    async def scenario() -> None:
        async with running(a, b) as broker:
            (partition,) = await create_topic(broker, "t", flush_messages="1")
            client, reader = Client(broker), Client(broker)
            client.produce(("t", 0, make_batch([b"before"])))
            await client.produced()
            reader.fetch(("t", 0, 1), max_wait_ms=9_000)
            target = other(partition, a, b)
            await alter(client, target, "t", 0)
            await until(lambda: is_in(partition, target))
            client.produce(("t", 0, make_batch([b"after"])))
            (produced,) = await client.produced()
            assert produced.base_offset == 1
            (topic,) = (await reader.fetched()).responses
            assert b"after" in bytes(topic.partitions[0].records or b"")

    run(scenario())


def test_a_move_is_shown_throttled_and_cancelled_by_moving_back(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"

    async def scenario() -> None:
        async with running(a, b) as broker:
            (partition,) = await create_topic(broker, "t")
            fill(partition, 4)
            home, target = Path(partition.log.directory.path), other(partition, a, b)
            await throttle(broker, 100_000)
            client = Client(broker)
            await alter(client, target, "t", 0)
            await until(lambda: len(list(target.glob("t-0.*-future"))) == 1)
            (current,) = (await described(client))[str(home)]
            (future,) = (await described(client))[str(target)]
            assert not current.is_future_key
            assert current.offset_lag == 0
            assert future.is_future_key
            assert future.offset_lag > 0
            assert broker.moves.max_lag > 0
            assert await alter(client, home, "t", 0) == {0: ErrorCode.NONE}
            assert (await described(client))[str(target)] == []
            assert not list(target.glob("t-0.*-future"))
            assert is_in(partition, home)
            await alter(client, target, "t", 0)
            await throttle(broker, 1 << 40)
            await until(lambda: is_in(partition, target))

    run(scenario())


def test_a_move_goes_on_after_a_restart(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"

    async def scenario() -> None:
        async with running(a, b) as broker:
            (partition,) = await create_topic(broker, "t")
            fill(partition, 4)
            target = other(partition, a, b)
            await throttle(broker, 100_000)
            await alter(Client(broker), target, "t", 0)
            await until(lambda: broker.logs.futures.all[0].log_end_offset > 0)
        async with running(a, b) as broker:
            (partition,) = broker.partitions
            assert len(broker.moves) == 1
            await throttle(broker, 1 << 40)
            await until(lambda: is_in(partition, target))
            assert partition.log.log_end_offset == 4 * 1024

    run(scenario())


def test_a_topic_is_deleted_while_it_moves(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"

    async def scenario() -> None:
        async with running(a, b) as broker:
            (partition,) = await create_topic(broker, "t")
            fill(partition, 2)
            await throttle(broker, 100_000)
            await alter(Client(broker), other(partition, a, b), "t", 0)
            await broker.controller.submit(DeleteTopics((TopicReference("t"),)))
            await until(lambda: len(broker.moves) == 0)
            left = [entry.name for folder in (a, b) for entry in folder.glob("t-0*")]
            assert len(left) == 2
            assert all(name.endswith("-delete") for name in left)

    run(scenario())


def test_a_log_that_starts_within_a_batch_moves(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"

    async def scenario() -> None:
        async with running(a, b) as broker:
            (partition,) = await create_topic(broker, "t")
            append(partition, make_batch([b"0", b"1", b"2", b"3"]))
            append(partition, make_batch([b"4"]))
            client = Client(broker)
            wanted = (DeleteRecordsPartition(partition_index=0, offset=2),)
            topics = (DeleteRecordsTopic(name="t", partitions=wanted),)
            client.send(DeleteRecordsRequest(topics=topics, timeout_ms=1000), version=2)
            await client.response(DeleteRecordsResponse)
            target = other(partition, a, b)
            await alter(client, target, "t", 0)
            await until(lambda: is_in(partition, target))
            assert partition.log.log_start_offset == 2
            assert read_values(partition.log) == [(2, b"2"), (3, b"3"), (4, b"4")]
        async with running(a, b) as broker:
            (partition,) = broker.partitions
            assert read_values(partition.log) == [(2, b"2"), (3, b"3"), (4, b"4")]

    run(scenario())


def test_a_copy_that_cannot_start_anew_for_lack_of_space_does_so_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"

    async def scenario() -> None:
        async with running(one, two) as broker:
            (partition,) = await create_topic(broker, "t")
            for _ in range(3):
                append(partition)
            partition.log.move_log_start_offset(2)
            full = [True]
            real = Segment.create

            def create(*arguments: Any, **named: Any) -> Segment:
                if full and Path(arguments[1]).name.endswith("-future") and arguments[2] == 2:
                    full.pop()
                    raise OSError(errno.ENOSPC, "No space left on device")
                return real(*arguments, **named)

            monkeypatch.setattr(Segment, "create", create)
            monkeypatch.setattr(log_dir_moves, "RETRY_PAUSE_S", 0.01)
            assert await alter(Client(broker), other(partition, one, two), "t", 0) == {0: ErrorCode.NONE}
            await until(lambda: len(broker.moves) == 0)
            assert not full
            assert [offset for offset, _ in read_values(partition.log)] == [2]

    run(scenario())


def test_what_is_refused(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"

    async def scenario() -> None:
        async with running(a, b) as broker:
            (partition,) = await create_topic(broker, "t")
            await create_topic(broker, "x" * 214)
            target, client = other(partition, a, b), Client(broker)
            assert await alter(client, "/nowhere", "t", 0) == {0: ErrorCode.LOG_DIR_NOT_FOUND}
            assert await alter(client, target, "t", 0, 7) == {
                0: ErrorCode.NONE,
                7: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            }
            assert await alter(client, target, "x" * 214, 0) == {0: ErrorCode.INVALID_TOPIC_EXCEPTION}
            await until(lambda: is_in(partition, target))
            home = other(partition, a, b)
            await change_setting(broker, "cordoned.log.dirs", str(home))
            assert await alter(client, home, "t", 0) == {0: ErrorCode.INVALID_REPLICA_ASSIGNMENT}
            broker.logs.take_offline(str(home), "a test")
            assert await alter(client, home, "t", 0) == {0: ErrorCode.KAFKA_STORAGE_ERROR}

    run(scenario())


def test_a_directory_named_before_the_topic_exists_gets_the_new_partition(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in "abc"]

    async def scenario() -> None:
        async with running(*folders) as broker:
            client = Client(broker)
            assert await alter(client, folders[2], "t", 0, 2) == dict.fromkeys(
                (0, 2), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
            partitions = await create_topic(broker, "t", 3)
            assert is_in(partitions[0], folders[2])
            assert not is_in(partitions[1], folders[2])
            assert is_in(partitions[2], folders[2])

    run(scenario())


def test_many_replicas_move_at_once(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"

    async def scenario() -> None:
        async with running(a, b) as broker:
            partitions = await create_topic(broker, "t", 20)
            for number, partition in enumerate(partitions):
                append(partition, make_batch([b"%d" % number]))
            await alter(Client(broker), a, "t", *range(20))
            await until(lambda: all(is_in(partition, a) for partition in partitions))
            assert [read_values(partition.log) for partition in partitions] == [
                [(0, b"%d" % number)] for number in range(20)
            ]
            await until(lambda: not list(b.glob("t-?")) and len(broker.moves) == 0)
            await asyncio.sleep(0)

    run(scenario())


def test_a_move_that_waits_for_another_is_cancelled_at_once(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"

    async def scenario() -> None:
        async with running(a, b, num_replica_alter_log_dirs_threads="1") as broker:
            await throttle(broker, 100_000)
            first, second = await create_topic(broker, "t", 2)
            homes = [Path(partition.log.directory.path) for partition in (first, second)]
            for partition in (first, second):
                fill(partition, 3)
            client = Client(broker)
            await alter(client, other(first, a, b), "t", 0)
            await alter(client, other(second, a, b), "t", 1)
            assert len(broker.moves) == 2
            await alter(client, homes[1], "t", 1)
            assert len(broker.moves) == 1, "the other one goes on"
            await throttle(broker, 1 << 40)
            await until(lambda: len(broker.moves) == 0)
            assert not is_in(first, homes[0])
            assert is_in(second, homes[1])

    run(scenario())
