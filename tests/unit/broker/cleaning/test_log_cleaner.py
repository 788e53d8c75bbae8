"""The cleaner's threads beside the event loop: when there are some, what they clean next, and what goes wrong.

Cleaning itself is replaced by a fake, so that a test decides when and how it ends.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import Offset, TopicPartition
from kaspar.broker.cleaning.jobs import Compaction
from kaspar.broker.cleaning.numbers import CleanerNumbers
from kaspar.broker.cleaning.thread import CleanerThread
from kaspar.broker.handlers.api_versions import announced
from kaspar.broker.server import Broker
from kaspar.broker.wiring import SERVED
from kaspar.controller.events import (
    AlterConfigs,
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    DeleteTopics,
    ResourceType,
    TopicReference,
)
from kaspar.protocol.api_keys import ApiKey
from kaspar.replication.partition import Partition
from kaspar.storage import Log, LogManager
from kaspar.storage.cleaning.cleaner import Cleaned, Cleaner, CleaningStatistics, OnOwner
from kaspar.storage.cleaning.errors import CleaningStopped, DamagedSegment
from kaspar.storage.cleaning.manager import LogCleanerManager
from kaspar.storage.cleaning.offsets_to_clean import OffsetsToClean
from kaspar.storage.segments.segment import NOT_LOADED
from tests.unit.broker.running import create_topic, run, running, until
from tests.unit.replication.partitions import append
from tests.unit.storage.logs import append_transactional, damage_header

AT_ONCE = {"log_cleaner_backoff_ms": "1"}
NEVER = {"log_cleaner_backoff_ms": "3600000"}


@dataclass
class Cleanings:
    """A fake of Cleaner.clean: notes the logs to clean, and does what the test says."""

    does: Callable[[Log, Callable[[], bool]], None] = lambda one, stopped: None
    of: list[TopicPartition] = field(default_factory=list)
    threads: set[str] = field(default_factory=set)

    def clean(
        self,
        cleaner: Cleaner,
        one: Log,
        dirt: OffsetsToClean,
        now_ms: int,
        *,
        on_owner: OnOwner,
        stopped: Callable[[], bool],
        wall_ms: int,
    ) -> Cleaned:
        self.of.append(one.topic_partition)
        self.threads.add(threading.current_thread().name)
        self.does(one, stopped)
        statistics = CleaningStatistics(records_read=5, records_written=2, bytes_read=100, bytes_written=40)
        return Cleaned(dirt.first_uncleanable_offset, statistics)


@pytest.fixture
def cleanings(monkeypatch: pytest.MonkeyPatch) -> Cleanings:
    made = Cleanings()
    monkeypatch.setattr(Cleaner, "clean", lambda cleaner, *arguments, **named: made.clean(cleaner, *arguments, **named))
    return made


def until_stopped(one: Log, stopped: Callable[[], bool]) -> None:
    """A cleaning that takes for ever."""
    never = threading.Event()
    while not stopped():
        never.wait(0.001)
    raise CleaningStopped("it was stopped")


async def compacted_topic(broker: Broker, partitions: int = 1) -> list[Partition]:
    """One that is cleaned as soon as there is anything to clean."""
    return await create_topic(broker, "t", partitions, cleanup_policy="compact", min_cleanable_dirty_ratio="0")


def dirty(*partitions: Partition) -> None:
    """Something in a segment that is not active."""
    for partition in partitions:
        append(partition)
        partition.log.roll(now_ms=0)


async def set_for(broker: Broker, kind: ResourceType, name: str, **configs: str) -> None:
    operations = tuple(ConfigOperation.set(key.replace("_", "."), value) for key, value in configs.items())
    change = ConfigChange(ConfigResource(kind, name), operations)
    (outcome,) = await broker.controller.submit(AlterConfigs((change,)))
    assert outcome.outcome.error is ErrorCode.NONE, outcome.outcome.message


async def compact(broker: Broker, partition: Partition, target: int = -1) -> Compaction:
    return await broker.cleaning.compact(partition, target)


def cleaner_threads() -> Iterator[str]:
    return (thread.name for thread in threading.enumerate() if thread.name.startswith("kaspar-cleaner"))


# When there is a cleaner


def test_a_broker_without_compacted_logs_has_no_cleaner_threads(tmp_path: Path, cleanings: Cleanings) -> None:
    async def scenario() -> None:
        async with running(tmp_path, **AT_ONCE) as broker:
            dirty(*await create_topic(broker, "plain"))
            assert broker.cleaning.manager is None
            assert list(cleaner_threads()) == []
            (partition,) = await compacted_topic(broker)
            await until(lambda: list(cleaner_threads()) == ["kaspar-cleaner-0"])
            dirty(partition)
            await until(lambda: cleanings.of == [TopicPartition("t", 0)])
        assert list(cleaner_threads()) == []

    run(scenario())


def test_a_topic_that_becomes_compacted_is_cleaned_and_one_that_ceases_to_be_is_given_up(
    tmp_path: Path, cleanings: Cleanings
) -> None:
    async def scenario() -> None:
        cleanings.does = until_stopped
        async with running(tmp_path, **AT_ONCE) as broker:
            (partition,) = await create_topic(broker, "t", min_cleanable_dirty_ratio="0")
            dirty(partition)
            await set_for(broker, ResourceType.TOPIC, "t", cleanup_policy="compact")
            await until(lambda: cleanings.of == [TopicPartition("t", 0)])
            await set_for(broker, ResourceType.TOPIC, "t", cleanup_policy="delete")
            manager = broker.cleaning.manager
            assert manager is not None
            await until(lambda: not manager.in_progress(partition.log))

    run(scenario())


def test_all_of_the_topics_become_compacted_with_the_brokers_default(tmp_path: Path, cleanings: Cleanings) -> None:
    async def scenario() -> None:
        async with running(tmp_path, log_cleaner_min_cleanable_ratio="0", **AT_ONCE) as broker:
            dirty(*await create_topic(broker, "t"))
            await set_for(broker, ResourceType.BROKER, "", log_cleanup_policy="compact")
            await until(lambda: cleanings.of == [TopicPartition("t", 0)])

    run(scenario())


@pytest.mark.parametrize("off", [{"log_cleaner_enable": "false"}, {"log_cleaner_threads": "0"}])
def test_a_cleaner_that_is_off(tmp_path: Path, off: dict[str, str]) -> None:
    async def scenario() -> None:
        async with running(tmp_path, **off) as broker:
            (partition,) = await compacted_topic(broker)
            dirty(partition)
            with pytest.raises(Refused, match=r"log\.cleaner\.enable=true"):
                await compact(broker, partition)
            assert broker.cleaning.manager is None
            assert list(cleaner_threads()) == []

    run(scenario())


# Settings that change


def test_threads_come_and_go_with_their_setting(tmp_path: Path, cleanings: Cleanings) -> None:
    async def scenario() -> None:
        cleanings.does = until_stopped
        async with running(tmp_path, **AT_ONCE) as broker:
            dirty(*await compacted_topic(broker, 3))
            await until(lambda: len(cleanings.of) == 1)
            await set_for(broker, ResourceType.BROKER, "", log_cleaner_threads="2")
            await until(lambda: len(cleanings.of) == 2)
            assert len(set(cleanings.of)) == 2, "no two threads clean the same log"
            await set_for(broker, ResourceType.BROKER, "", log_cleaner_threads="1")
            await until(lambda: list(cleaner_threads()) == ["kaspar-cleaner-0"])
            assert CleanerNumbers.of(broker.cleaning, broker.logs).dead_thread_count == 0

    run(scenario())


def test_memory_is_split_between_the_threads_and_the_throttle_is_one_for_all(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, log_cleaner_threads="2", **NEVER) as broker:
            (partition,) = await compacted_topic(broker)
            await compact(broker, partition)
            first, second = (thread._jobs.throttle for thread in broker.cleaning.cleaner_threads)
            assert first is second
            await set_for(
                broker,
                ResourceType.BROKER,
                "",
                log_cleaner_dedupe_buffer_size="8000000",
                log_cleaner_io_buffer_size="400000",
                log_cleaner_io_buffer_load_factor="0.5",
                log_cleaner_io_max_bytes_per_second="1234.5",
            )
            settings = broker.cleaning.settings()
            assert (settings.dedupe_buffer_size, settings.io_buffer_size) == (4_000_000, 100_000)
            assert settings.io_buffer_load_factor == 0.5
            assert first.bytes_per_second == 1234.5

    run(scenario())


def test_memory_for_keys_is_given_back_when_nothing_is_to_be_cleaned(tmp_path: Path, cleanings: Cleanings) -> None:
    async def scenario() -> None:
        async with running(tmp_path, **AT_ONCE) as broker:
            dirty(*await compacted_topic(broker))
            await until(lambda: len(cleanings.of) == 1)
            (thread,) = broker.cleaning.cleaner_threads
            await until(lambda: thread._cleaner is None)

    run(scenario())


# What goes wrong


def test_damage_is_logged_once_and_keeps_no_other_log_from_being_cleaned(
    tmp_path: Path, cleanings: Cleanings, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(one: Log, stopped: Callable[[], bool]) -> None:
        if one.topic_partition.partition == 0:
            raise DamagedSegment("00000000000000000000.log", 7, "nonsense")

    async def scenario() -> None:
        cleanings.does = fails
        async with running(tmp_path, **AT_ONCE) as broker:
            damaged, sound = await compacted_topic(broker, 2)
            dirty(damaged)
            await until(lambda: bool(CleanerNumbers.of(broker.cleaning, broker.logs).uncleanable[0].partition_count))
            dirty(sound)
            await until(lambda: TopicPartition("t", 1) in cleanings.of)
            assert cleanings.of.count(TopicPartition("t", 0)) == 1
            numbers = CleanerNumbers.of(broker.cleaning, broker.logs).uncleanable[0]
            assert (numbers.path, numbers.partition_count) == (str(tmp_path), 1)
            assert numbers.dirty_bytes == damaged.log.size > 0
            with pytest.raises(Refused, match=r"t-0 cannot be cleaned: .*nonsense"):
                await compact(broker, damaged)

    run(scenario())
    assert sum("cannot be cleaned" in record.message for record in caplog.records) == 1


def test_a_bug_with_one_log_is_reported_to_the_broker_and_ends_nothing(tmp_path: Path, cleanings: Cleanings) -> None:
    def fails(one: Log, stopped: Callable[[], bool]) -> None:
        assert one.topic_partition.partition == 1, "a broken invariant"

    async def scenario() -> None:
        cleanings.does = fails
        async with running(tmp_path, **AT_ONCE) as broker:
            bad, good = await compacted_topic(broker, 2)
            dirty(bad)
            problem = await broker.failure
            assert isinstance(problem, AssertionError)
            dirty(good)
            await until(lambda: TopicPartition("t", 1) in cleanings.of)
            assert cleanings.of.count(TopicPartition("t", 0)) == 1

    run(scenario())


def test_a_bug_while_logs_are_looked_at_does_not_end_the_thread(
    tmp_path: Path, cleanings: Cleanings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with running(tmp_path, **AT_ONCE) as broker:
            real, bugs = LogCleanerManager.next_to_clean, iter([ZeroDivisionError("a bug")])

            def looks(
                manager: LogCleanerManager, stable: Mapping[TopicPartition, int], now_ms: int
            ) -> tuple[Log, OffsetsToClean] | None:
                for bug in bugs:
                    raise bug
                return real(manager, stable, now_ms)

            monkeypatch.setattr(LogCleanerManager, "next_to_clean", looks)
            (partition,) = await compacted_topic(broker)
            dirty(partition)
            await until(lambda: len(cleanings.of) == 1)

    run(scenario())


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_died_is_seen(tmp_path: Path, cleanings: Cleanings) -> None:
    def dies(one: Log, stopped: Callable[[], bool]) -> None:
        raise SystemExit

    async def scenario() -> None:
        cleanings.does = dies
        async with running(tmp_path, **AT_ONCE) as broker:
            (partition,) = await compacted_topic(broker)
            assert CleanerNumbers.of(broker.cleaning, broker.logs).dead_thread_count == 0
            dirty(partition)
            await until(lambda: CleanerNumbers.of(broker.cleaning, broker.logs).dead_thread_count == 1)

    run(scenario())


def test_a_full_disk_makes_a_log_wait_and_no_other(tmp_path: Path, cleanings: Cleanings) -> None:
    def fails(one: Log, stopped: Callable[[], bool]) -> None:
        if one.topic_partition.partition == 0:
            raise Refused(ErrorCode.KAFKA_STORAGE_ERROR, "no space is left")

    async def scenario() -> None:
        cleanings.does = fails
        async with running(tmp_path, **AT_ONCE) as broker:
            partitions = await compacted_topic(broker, 2)
            dirty(*partitions)
            await until(lambda: set(cleanings.of) == {TopicPartition("t", 0), TopicPartition("t", 1)})
            assert cleanings.of.count(TopicPartition("t", 0)) == 1
            assert not partitions[0].offline
            with pytest.raises(Refused, match="no space is left; it will be retried"):
                await compact(broker, partitions[0])

    run(scenario())


def test_a_log_that_is_to_be_compacted_now_and_has_no_space_keeps_no_other_from_being_cleaned(
    tmp_path: Path, cleanings: Cleanings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with running(tmp_path, **AT_ONCE) as broker:
            full, roomy = await compacted_topic(broker, 2)
            real = LogManager.secure

            def secure(manager: LogManager, one: Log, offset: int) -> None:
                if one is full.log:
                    raise Refused(ErrorCode.KAFKA_STORAGE_ERROR, "no space is left")
                real(manager, one, offset)

            monkeypatch.setattr(LogManager, "secure", secure)
            dirty(full)
            await compact(broker, full)
            dirty(roomy)
            await until(lambda: cleanings.of == [TopicPartition("t", 1)])

    run(scenario())


def test_how_far_a_log_can_be_compacted_is_refused_where_a_header_is_damaged(
    tmp_path: Path, cleanings: Cleanings
) -> None:
    async def scenario() -> None:
        async with running(tmp_path, **NEVER) as broker:
            (partition,) = await create_topic(broker, "t", cleanup_policy="compact", max_compaction_lag_ms="100000")
            dirty(partition)
            segment = partition.log.segments.all[0]
            segment.rolling_timestamp = NOT_LOADED  # as after a start
            damage_header(segment)
            with pytest.raises(Refused, match=r"t-0 cannot be cleaned: .*magic 99") as refused:
                await compact(broker, partition)
            assert refused.value.code is ErrorCode.CORRUPT_MESSAGE

    run(scenario())


def test_a_log_is_tried_again_when_space_may_have_returned(
    tmp_path: Path, cleanings: Cleanings, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals = iter([Refused(ErrorCode.KAFKA_STORAGE_ERROR, "no space is left")])

    def fails(one: Log, stopped: Callable[[], bool]) -> None:
        for refusal in refusals:
            raise refusal

    async def scenario() -> None:
        monkeypatch.setattr("kaspar.broker.cleaning.log_cleaner.SPACE_MAY_RETURN_AFTER_S", 0.0)
        cleanings.does = fails
        async with running(tmp_path, **AT_ONCE) as broker:
            dirty(*await compacted_topic(broker))
            await until(lambda: broker.cleaning.totals.runs == 1)
            assert len(cleanings.of) == 2

    run(scenario())


def test_a_failed_disk_takes_its_directory_offline(tmp_path: Path, cleanings: Cleanings) -> None:
    async def scenario() -> None:
        def fails(one: Log, stopped: Callable[[], bool]) -> None:
            raise one.directory.take_offline("a failed disk")

        cleanings.does = fails
        async with running(tmp_path / "a", tmp_path / "b", **AT_ONCE) as broker:
            bad, good = await compacted_topic(broker, 2)
            dirty(bad)
            await until(lambda: bad.offline and broker.partitions.get(bad.topic_partition) is not None)
            dirty(good)
            assert not good.offline
            await until(lambda: not broker.logs.get(bad.topic_partition))

    run(scenario())


# Taking logs away from the cleaner


def test_a_stop_gives_up_a_cleaning_that_is_under_way(tmp_path: Path, cleanings: Cleanings) -> None:
    async def scenario() -> None:
        cleanings.does = until_stopped
        async with running(tmp_path, log_cleaner_threads="2", **AT_ONCE) as broker:
            dirty(*await compacted_topic(broker, 2))
            await until(lambda: len(cleanings.of) == 2)
            await broker.stop()
            assert list(cleaner_threads()) == []
            await broker.stop()

    run(scenario())


def test_a_thread_that_was_one_too_many_is_waited_for_as_the_others_are(tmp_path: Path, cleanings: Cleanings) -> None:
    go_on = threading.Event()

    def slow_to_stop(one: Log, stopped: Callable[[], bool]) -> None:
        go_on.wait(10)
        until_stopped(one, stopped)

    async def scenario() -> None:
        cleanings.does = slow_to_stop
        async with running(tmp_path, log_cleaner_threads="2", **AT_ONCE) as broker:
            dirty(*await compacted_topic(broker, 2))
            await until(lambda: len(cleanings.of) == 2)
            await set_for(broker, ResourceType.BROKER, "", log_cleaner_threads="1")
            assert len(list(cleaner_threads())) == 2
            go_on.set()
            await broker.stop()
            assert list(cleaner_threads()) == []

    run(scenario())


def test_a_topic_that_is_deleted_is_let_go_before_its_folder_is_touched(
    tmp_path: Path, cleanings: Cleanings, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go = threading.Event()

    def slow_to_stop(one: Log, stopped: Callable[[], bool]) -> None:
        try:
            until_stopped(one, stopped)
        finally:
            assert Path(one.folder).exists()
            let_go.set()

    async def scenario() -> None:
        cleanings.does = slow_to_stop
        async with running(tmp_path, **AT_ONCE) as broker:
            dirty(*await compacted_topic(broker))
            await until(lambda: len(cleanings.of) == 1)
            await broker.controller.submit(DeleteTopics((TopicReference(name="t"),)))
            assert let_go.is_set()
            assert not (tmp_path / "t-0").exists()
            assert not broker.failure.done()
            cleanings.does = lambda one, stopped: None
            dirty(*await compacted_topic(broker))
            await until(lambda: len(cleanings.of) == 2)

    run(scenario())


# Compact now


def test_what_is_asked_for_is_cleaned_whatever_its_ratio_and_before_all_others(
    tmp_path: Path, cleanings: Cleanings
) -> None:
    async def scenario() -> None:
        async with running(tmp_path, **NEVER) as broker:
            (partition,) = await create_topic(broker, "t", cleanup_policy="compact", min_cleanable_dirty_ratio="1")
            append(partition)
            begun = await compact(broker, partition)
            assert (begun.target_offset, begun.first_dirty_offset) == (partition.log.log_end_offset, 0)
            assert partition.log.segment_count == 2, "the active segment is rolled, for it is never cleaned"
            await until(lambda: broker.cleaning.totals.runs == 1)
            done = await compact(broker, partition, begun.target_offset)
            assert done.first_dirty_offset == begun.target_offset
            assert done.records_removed - begun.records_removed == 3
            again = await compact(broker, partition)
            assert again.first_dirty_offset == again.target_offset == begun.target_offset
            assert partition.log.segment_count == 2, "there is nothing to roll"

    run(scenario())


def test_how_far_a_cleaning_is_can_be_asked_while_it_runs(tmp_path: Path, cleanings: Cleanings) -> None:
    half_done, go_on = threading.Event(), threading.Event()

    def reads_the_dirty_part_once(one: Log, stopped: Callable[[], bool]) -> None:
        (thread,) = (each for each in threading.enumerate() if isinstance(each, CleanerThread))
        thread._meter.spent(one.size, stopped)
        half_done.set()
        go_on.wait(10)

    async def scenario() -> None:
        cleanings.does = reads_the_dirty_part_once
        async with running(tmp_path, **NEVER) as broker:
            (partition,) = await compacted_topic(broker)
            append(partition)
            begun = await compact(broker, partition)
            assert await broker.threads.run_blocking(half_done.wait, 10)
            assert (await compact(broker, partition, begun.target_offset)).percent == 50
            go_on.set()
            await until(lambda: broker.cleaning.totals.runs == 1)
            await until(lambda: not broker.cleaning.cleaner_threads[0]._jobs._at_work)
            assert (await compact(broker, partition, begun.target_offset)).percent == -1

    run(scenario())


def test_a_target_returned_before_a_restart_stays_valid(tmp_path: Path, cleanings: Cleanings) -> None:
    async def scenario() -> None:
        async with running(tmp_path, **NEVER) as broker:
            (partition,) = await create_topic(broker, "t", cleanup_policy="compact", min_cleanable_dirty_ratio="1")
            dirty(partition)
            await compact(broker, partition, partition.log.log_end_offset)
            await until(lambda: broker.cleaning.totals.runs == 1)

    run(scenario())


def test_what_is_not_compacted_is_refused_with_the_way_to_change_that(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t")
            with pytest.raises(
                Refused, match=r"cleanup\.policy of t is delete, .* --add-config cleanup\.policy=compact"
            ):
                await compact(broker, partition)
            assert broker.cleaning.manager is None

    run(scenario())


def test_an_open_transaction_is_left_alone(tmp_path: Path, cleanings: Cleanings) -> None:
    async def scenario() -> None:
        async with running(tmp_path, **NEVER) as broker:
            (partition,) = await compacted_topic(broker)
            dirty(partition)
            append_transactional(partition.log, producer_id=7, base_sequence=0)
            partition.durable_up_to(Offset(partition.log.log_end_offset))
            progress = await compact(broker, partition)
            assert progress.target_offset == partition.last_stable_offset < partition.log.log_end_offset
            assert partition.log.segment_count == 2, "nothing in the active segment could be cleaned: it stays"

    run(scenario())


def test_the_api_for_it_is_served_and_not_announced() -> None:
    assert ApiKey.COMPACT_TOPICS in SERVED
    assert ApiKey.COMPACT_TOPICS not in {api.api_key for api in announced(SERVED)}
