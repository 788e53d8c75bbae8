"""Group commit: every request for a sync gets one, syncs are shared, and a failed one is reported."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode, Refused, StorageFailure
from kaspar.base.ids import Offset
from kaspar.broker.syncing import Syncing
from kaspar.replication.partition import Partition
from kaspar.storage import Log
from tests.unit.broker.running import run
from tests.unit.replication.partitions import append, leadership, make_partition
from tests.unit.storage.logs import log_config


class Watched:
    """A `Syncing`, and what it reported."""

    def __init__(self) -> None:
        self.syncs: list[float] = []
        self.failures: list[StorageFailure] = []
        self.bugs: list[Exception] = []
        self.syncing = Syncing(
            ThreadPoolExecutor(2),
            synced=self.syncs.append,
            failed=self.failures.append,
            on_bug=self.bugs.append,
        )


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    leading = make_partition(tmp_path, log_config(flush_messages=1))
    leading.lead_or_follow(leadership())
    return leading


def test_a_partition_that_is_held_is_synced_when_it_is_released(partition: Partition) -> None:
    async def scenario() -> None:
        watched = Watched()
        await watched.syncing.hold(partition)
        append(partition)
        watched.syncing.ask(partition)
        await watched.syncing.finish()
        assert (watched.syncs, partition.high_watermark) == ([], 0)
        watched.syncing.release(partition)
        await watched.syncing.finish()
        assert (len(watched.syncs), partition.high_watermark) == (1, 1)

    run(scenario())


def test_what_is_appended_during_a_sync_is_covered_by_the_next(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_begun, may_go_on = threading.Event(), threading.Event()
    real = Log.flush

    def flush(log: Log) -> Offset:
        has_begun.set()
        may_go_on.wait(10)
        return real(log)

    async def scenario() -> None:
        monkeypatch.setattr(Log, "flush", flush)
        watched = Watched()
        append(partition)
        watched.syncing.ask(partition)
        await asyncio.to_thread(has_begun.wait, 10)
        for _ in range(5):
            append(partition)
            watched.syncing.ask(partition)
        may_go_on.set()
        await watched.syncing.finish()
        assert partition.high_watermark == 6
        assert len(watched.syncs) <= 2

    run(scenario())


def test_a_failed_sync_is_reported_and_commits_nothing(partition: Partition, monkeypatch: pytest.MonkeyPatch) -> None:
    def flush(log: Log) -> Offset:
        raise log.directory.take_offline("the disk is gone")

    async def scenario() -> None:
        monkeypatch.setattr(Log, "flush", flush)
        watched = Watched()
        append(partition)
        watched.syncing.ask(partition)
        await watched.syncing.finish()
        assert len(watched.failures) == 1
        assert partition.high_watermark == 0

    run(scenario())


def test_a_sync_refused_for_want_of_space_is_tried_again_when_asked(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flush(log: Log) -> Offset:
        raise Refused(ErrorCode.KAFKA_STORAGE_ERROR, "no space is left")

    async def scenario() -> None:
        watched = Watched()
        append(partition)
        with monkeypatch.context() as full:
            full.setattr(Log, "flush", flush)
            watched.syncing.ask(partition)
            await watched.syncing.finish()
        assert partition.high_watermark == 0
        watched.syncing.ask(partition)
        await watched.syncing.finish()
        assert partition.high_watermark == 1
        assert not watched.failures

    run(scenario())


def test_a_bug_in_a_commit_callback_is_reported(partition: Partition) -> None:
    def waiter() -> None:
        raise ZeroDivisionError("a bug")

    async def scenario() -> None:
        watched = Watched()
        append(partition)
        partition.when_committed(Offset(1), waiter)
        watched.syncing.ask(partition)
        await watched.syncing.finish()
        assert [type(bug) for bug in watched.bugs] == [ZeroDivisionError]

    run(scenario())


def test_requests_that_wait_for_a_sync_complete_when_the_topic_no_longer_needs_one(partition: Partition) -> None:
    async def scenario() -> None:
        watched = Watched()
        append(partition)
        watched.syncing.ask(partition)
        partition.log.reconfigure(log_config())
        await watched.syncing.finish()
        assert partition.high_watermark == 1

    run(scenario())
