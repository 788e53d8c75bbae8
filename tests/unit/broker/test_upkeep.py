"""What is done from time to time: one partition or one pass that fails keeps no other from its turn."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import Offset
from kaspar.storage import Log
from tests.unit.broker.running import create_topic, run, running, until
from tests.unit.replication.partitions import append

OFTEN = {"log_retention_check_interval_ms": "1"}


def test_a_partition_that_has_no_space_to_roll_keeps_no_other_from_its_retention(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with running(tmp_path, **OFTEN) as broker:
            partitions = await create_topic(broker, "t", 3, retention_ms="1")
            real = Log.delete_old_segments

            def delete(log: Log, start_offset: int, *, now_ms: int) -> int:
                if log is partitions[0].log:
                    raise Refused(ErrorCode.KAFKA_STORAGE_ERROR, "no space is left")
                return real(log, start_offset, now_ms=now_ms)

            monkeypatch.setattr(Log, "delete_old_segments", delete)
            for partition in partitions:
                append(partition)
            await until(lambda: all(partition.log.log_start_offset == 1 for partition in partitions[1:]))
            assert partitions[0].log.log_start_offset == 0

    run(scenario())


def test_a_bug_in_one_pass_does_not_end_the_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with running(tmp_path, **OFTEN) as broker:
            (partition,) = await create_topic(broker, "t", retention_ms="1")
            real = Log.retention_start_offset
            bugs: Iterator[Exception] = iter([ZeroDivisionError("a bug")])

            def start(log: Log, now_ms: int, high_watermark: int) -> Offset:
                for bug in bugs:
                    raise bug
                return real(log, now_ms, high_watermark)

            monkeypatch.setattr(Log, "retention_start_offset", start)
            append(partition)
            await until(lambda: partition.log.log_start_offset == 1)

    run(scenario())


def test_retention_leaves_a_partition_alone_that_is_being_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folder is renamed in a thread at that very time: a file that is not found takes the directory offline."""

    async def scenario() -> None:
        async with running(tmp_path, **OFTEN) as broker:
            (partition,) = await create_topic(broker, "t")
            looked = asyncio.Event()

            def start(log: Log, now_ms: int, high_watermark: int) -> Offset:
                broker.from_thread(partition.retire)
                broker.from_thread(looked.set)
                return Offset(1)

            monkeypatch.setattr(Log, "retention_start_offset", start)
            append(partition)
            await looked.wait()
            await broker.run_blocking(lambda: None)
            assert partition.log.log_start_offset == 0

    run(scenario())
