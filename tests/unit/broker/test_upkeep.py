"""What is done from time to time: one partition or one pass that fails keeps no other from its turn."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from kaspar.base.clock import ManualClock
from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import Offset
from kaspar.base.patient_clock import PATIENCE_MS, PatientClock
from kaspar.broker import upkeep
from kaspar.broker.cleaning.log_cleaner import LEAST_BACKOFF_MS
from kaspar.broker.upkeep import MOST_SEGMENTS_AT_ONCE
from kaspar.storage import Log
from kaspar.storage.producers import snapshots
from tests.unit.broker.running import create_topic, run, running, until
from tests.unit.replication.partitions import append
from tests.unit.storage.logs import NOW_MS, make_batch

OFTEN = {"log_retention_check_interval_ms": "1"}
DAY_MS = 86_400_000


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
                broker.threads.call_on_loop(partition.retire)
                broker.threads.call_on_loop(looked.set)
                return Offset(1)

            monkeypatch.setattr(Log, "retention_start_offset", start)
            append(partition)
            await looked.wait()
            await broker.threads.run_blocking(lambda: None)
            assert partition.log.log_start_offset == 0

    run(scenario())


def test_retention_leaves_a_log_alone_that_has_moved_to_another_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with one that is being deleted: the folder that it has left is renamed in a thread."""

    async def scenario() -> None:
        async with running(tmp_path, **OFTEN) as broker:
            (partition,) = await create_topic(broker, "t")
            (other,) = await create_topic(broker, "other")
            old, new = partition.log, other.log
            looks: list[Log] = []

            def start(log: Log, now_ms: int, high_watermark: int) -> Offset:
                looks.append(log)
                if log is old:
                    broker.threads.call_on_loop(partition.log_moved, new)
                return Offset(1 if log is old else 0)

            append(partition)
            monkeypatch.setattr(Log, "retention_start_offset", start)
            await until(lambda: old in looks and looks[-1] is new)  # one partition after the other
            assert (old.log_start_offset, old.segment_count) == (0, 1)
            partition.log_moved(old)

    run(scenario())


def test_a_clock_that_jumps_ahead_deletes_nothing_before_the_new_time_has_lasted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with running(tmp_path, **OFTEN) as broker:
            clock = ManualClock(NOW_MS)
            broker.logs.patient_clock = PatientClock(clock)
            (partition,) = await create_topic(broker, "t", retention_ms=str(DAY_MS))
            real = Log.retention_start_offset
            looks = []

            def look(log: Log, now_ms: int, high_watermark: int) -> Offset:
                looks.append(now_ms)
                return real(log, now_ms, high_watermark)

            monkeypatch.setattr(Log, "retention_start_offset", look)
            append(partition)
            clock.jump(365 * DAY_MS)
            looks.clear()
            await until(lambda: len(looks) > 2)
            assert partition.log.log_start_offset == 0
            clock.advance(PATIENCE_MS)
            await until(lambda: partition.log.log_start_offset == 1)

    run(scenario())


def test_where_logs_begin_is_written_down_as_soon_as_segments_are_deleted(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, **OFTEN) as broker:
            (partition,) = await create_topic(broker, "t", retention_ms="1")
            append(partition)
            checkpoint = tmp_path / "log-start-offset-checkpoint"
            await until(lambda: "t 0 1" in checkpoint.read_text())
            assert partition.log.log_start_offset == 1

    run(scenario())


def test_a_compacted_topic_gives_up_what_lies_below_its_start(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, **OFTEN) as broker:
            (partition,) = await create_topic(broker, "t", cleanup_policy="compact", retention_ms="1")
            append(partition)
            partition.log.roll(now_ms=NOW_MS)
            append(partition)
            partition.log.log_start_offset = 1
            await until(lambda: partition.log.segments.base_offsets == (1,))

    run(scenario())


def test_a_compacted_segment_that_nobody_appends_to_ends_after_max_compaction_lag(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, log_cleaner_backoff_ms="1") as broker:
            (idle,) = await create_topic(broker, "idle", cleanup_policy="compact", max_compaction_lag_ms="1000")
            (unhurried,) = await create_topic(broker, "unhurried", cleanup_policy="compact")
            append(unhurried)
            append(idle)
            await until(lambda: idle.log.segments.base_offsets[-1] == 1)
            assert unhurried.log.segments.base_offsets == (0,)

    run(scenario())


def test_many_old_segments_go_in_steps_so_that_the_loop_has_time_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with running(tmp_path, **OFTEN) as broker:
            (partition,) = await create_topic(broker, "t", retention_ms="1")
            log = partition.log
            with monkeypatch.context() as meanwhile:
                meanwhile.setattr(Log, "retention_start_offset", lambda *arguments: Offset(0))
                for _ in range(2 * MOST_SEGMENTS_AT_ONCE + 5):
                    append(partition)
                    log.roll(now_ms=NOW_MS)
                append(partition)
                steps = []
                real = Log.delete_old_segments

                def delete(log: Log, start_offset: int, *, now_ms: int) -> int:
                    steps.append(real(log, start_offset, now_ms=now_ms))
                    return steps[-1]

            monkeypatch.setattr(Log, "delete_old_segments", delete)
            await until(lambda: log.log_start_offset == log.log_end_offset)
            assert [step for step in steps if step] == [MOST_SEGMENTS_AT_ONCE, MOST_SEGMENTS_AT_ONCE, 6]

    run(scenario())


def test_segments_of_many_producers_go_in_one_round_once_their_snapshots_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "SMALL", -1)

    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t", retention_ms="1")
            log = partition.log
            for sequence in range(MOST_SEGMENTS_AT_ONCE + 5):
                append(partition, make_batch(producer_id=1, producer_epoch=0, base_sequence=sequence))
                log.roll(now_ms=NOW_MS)
            append(partition, make_batch(producer_id=1, producer_epoch=0, base_sequence=sequence + 1))
            await broker.upkeep._retain()
            assert log.segments.base_offsets == (log.log_end_offset,)
            assert log.snapshots.written == [log.log_end_offset]

    run(scenario())


def test_the_loop_has_a_turn_between_two_idle_segments_that_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with running(tmp_path, log_cleaner_backoff_ms="0") as broker:
            looks: list[int] = []
            turns = 0

            def turn() -> None:
                nonlocal turns
                turns += 1
                asyncio.get_running_loop().call_soon(turn)

            def look(log: Log, *, now_ms: int) -> bool:
                looks.append(turns)
                return False

            monkeypatch.setattr(Log, "roll_if_overdue", look)
            await create_topic(broker, "t", 5, cleanup_policy="compact", max_compaction_lag_ms="1000")
            turn()
            looks.clear()
            await until(lambda: len(looks) >= 5)
            assert len(set(looks)) == len(looks)

    run(scenario())


def test_without_a_backoff_idle_segments_and_dirty_logs_are_still_looked_for_with_a_rest(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, log_cleaner_backoff_ms="0") as broker:
            assert broker.cleaning.backoff_ms == LEAST_BACKOFF_MS
            assert broker.cleaning.backoff_s == LEAST_BACKOFF_MS / 1000

    run(scenario())


def test_flush_ms_is_measured_on_the_steady_clock(tmp_path: Path) -> None:
    """A wall clock that goes back puts off no sync."""

    async def scenario() -> None:
        async with running(tmp_path) as broker:
            clock = ManualClock(NOW_MS)
            broker.logs.patient_clock = PatientClock(clock)
            (partition,) = await create_topic(broker, "t", flush_ms="1000")
            append(partition)
            partition.log.local.unflushed_since_ms = 0
            clock.jump(-DAY_MS)
            clock.advance(1000)
            await until(lambda: partition.log.recovery_point == 1)

    run(scenario())


def test_idle_producers_are_forgotten_in_slices_and_by_the_steady_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        monkeypatch.setattr(upkeep, "PRODUCER_EXPIRY_INTERVAL_MS", 1)
        monkeypatch.setattr(upkeep, "MOST_PRODUCERS_AT_ONCE", 10)
        async with running(tmp_path, producer_id_expiration_ms="1000") as broker:
            clock = ManualClock(NOW_MS)
            broker.logs.patient_clock = PatientClock(clock)
            (partition,) = await create_topic(broker, "t")
            for producer_id in range(35):
                append(partition, make_batch(producer_id=producer_id, producer_epoch=0, base_sequence=0))
            producers = partition.log.producers.entries
            await until(lambda: all(entry.seen_ms == 0 for entry in producers.values()))
            clock.jump(DAY_MS)
            clock.advance(999)
            assert [sum(broker.logs.expire_producers(10))] == [0]
            assert len(producers) == 35
            clock.advance(1)
            await until(lambda: not producers)

    run(scenario())
