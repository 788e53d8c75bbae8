"""Loading a coordinator's partition: what can be read counts, what cannot is passed over, and the loop goes on."""

import asyncio
import gc
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.broker.coordination import loading
from kaspar.broker.coordination.loading import LoadCancelled, ShardLoader
from kaspar.records import (
    Codec,
    ControlType,
    EndTransactionMarker,
    Record,
    build_batch,
    build_end_transaction_marker,
    build_leader_change,
)
from kaspar.storage import Log
from tests.unit.broker.coordination.toy import KINDS, Said, ToyShard, stored, toys
from tests.unit.broker.running import run, until
from tests.unit.storage.logs import NOW_MS, LogFolder, log_config

OTHER_PRODUCER = ProducerIdAndEpoch(88, 0)
PRODUCER = ProducerIdAndEpoch(77, 3)


def record(name: str, text: str | None) -> Record:
    return Record(NOW_MS, *KINDS.encode(stored(name, text)))


def append_raw(log: Log, batch: bytearray) -> None:
    """As it is: a log may hold anything."""
    start = log.log_end_offset
    view = memoryview(batch)
    view[:8] = start.to_bytes(8, "big")
    assert log.append_as_follower(batch, leader_epoch=0, now_ms=NOW_MS) is not None


def append(log: Log, *records: Record, codec: Codec = Codec.NONE, producer: ProducerIdAndEpoch | None = None) -> None:
    producer_id, epoch = producer or (-1, -1)
    append_raw(
        log,
        build_batch(
            records,
            codec=codec,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=-1 if producer is None else 0,
            transactional=producer is not None,
            leader_epoch=0,
        ),
    )


def end(log: Log, producer: ProducerIdAndEpoch, *, committed: bool) -> None:
    marker = EndTransactionMarker(ControlType.COMMIT if committed else ControlType.ABORT, 0)
    append_raw(
        log,
        build_end_transaction_marker(
            marker,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            timestamp=NOW_MS,
            leader_epoch=0,
        ),
    )


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return LogFolder(tmp_path, log_config(segment_bytes=2000)).log


def load(log: Log, piece_bytes: int = 300) -> tuple[ShardLoader, ToyShard]:
    shard = ToyShard(0, 0)
    loader = ShardLoader(shard, lambda: log, piece_bytes=piece_bytes, cancelled=lambda: False)
    loader.load_up_to(log.log_end_offset)
    assert loader.position == log.log_end_offset
    return loader, shard


def test_every_record_is_taken_in_whatever_the_size_of_the_pieces(log: Log) -> None:
    for number in range(200):
        append(log, record(f"n{number % 50}", str(number)), record("last", str(number)))
    append(log, record("n0", None))
    for piece_bytes in (1, 100, 5000, 1 << 20):
        loader, shard = load(log, piece_bytes)
        assert shard.texts == {f"n{number % 50}": str(number) for number in range(151, 200)} | {"last": "199"}
        assert (loader.records, loader.damaged, loader.unknown) == (401, 0, 0)


@pytest.mark.parametrize("codec", Codec)
def test_compressed_batches_are_inflated(log: Log, codec: Codec) -> None:
    append(log, *(record(f"n{number}", "text" * 5) for number in range(30)), codec=codec)
    assert len(load(log)[1].texts) == 30


def test_transactions_end_as_their_markers_say(log: Log) -> None:
    append(log, record("a", "committed"), producer=PRODUCER)
    append(log, record("b", "aborted"), producer=OTHER_PRODUCER)
    append(log, record("c", "plain"))
    end(log, PRODUCER, committed=True)
    end(log, OTHER_PRODUCER, committed=False)
    append(log, record("d", "open"), producer=PRODUCER)
    _, shard = load(log)
    assert shard.texts == {"a": "committed", "c": "plain"}
    assert shard.pending == {PRODUCER.producer_id: {"d": "open"}}


def test_control_batches_of_other_kinds_are_passed_over(log: Log) -> None:
    append_raw(log, build_leader_change(1, (1,), (1,), timestamp=NOW_MS, leader_epoch=0))
    append(log, record("a", "1"))
    assert load(log)[1].texts == {"a": "1"}


def damaged_records() -> Iterator[Record]:
    key, value = KINDS.encode(stored("b", "2"))
    yield Record(NOW_MS, None, b"no key")
    yield Record(NOW_MS, b"", b"no kind")
    yield Record(NOW_MS, key[:-1], value)
    yield Record(NOW_MS, key, value[:-1] if value else None)
    yield Record(NOW_MS, key, b"\x00\x63" + b"a version of later")


@pytest.mark.parametrize("damaged", list(damaged_records()))
def test_a_record_that_cannot_be_read_is_passed_over_and_what_follows_counts(log: Log, damaged: Record) -> None:
    append(log, record("a", "1"), damaged, record("c", "3"))
    loader, shard = load(log)
    assert shard.texts == {"a": "1", "c": "3"}
    assert loader.damaged == 1


def test_a_kind_of_record_that_only_a_later_version_knows_is_no_damage(log: Log) -> None:
    append(log, Record(NOW_MS, b"\x00\x63of later", b"?"), record("a", "1"))
    loader, shard = load(log)
    assert (shard.texts, loader.unknown, loader.damaged) == ({"a": "1"}, 1, 0)


def test_a_record_that_its_shard_cannot_take_in_is_passed_over(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    real = ToyShard.replay

    def replay(shard: ToyShard, *arguments: object) -> None:
        if arguments[0] == stored("bad", "1"):
            raise KeyError("a bug")
        real(shard, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(ToyShard, "replay", replay)
    append(log, record("a", "1"), record("bad", "1"), record("c", "3"))
    loader, shard = load(log)
    assert (shard.texts, loader.damaged) == ({"a": "1", "c": "3"}, 1)


def overwrite(log: Log, position: int, octets: bytes, segment: int = 0) -> None:
    path = log.segments.all[segment].path(".log")
    fd = os.open(path, os.O_RDWR)
    try:
        os.pwrite(fd, octets, position)
    finally:
        os.close(fd)


def test_a_batch_with_a_wrong_checksum_is_passed_over(log: Log) -> None:
    append(log, record("a", "1"))
    first_size = log.size
    append(log, record("b", "2"))
    append(log, record("c", "3"))
    overwrite(log, first_size + 61 + 3, b"\xff")
    loader, shard = load(log)
    assert (shard.texts, loader.damaged) == ({"a": "1", "c": "3"}, 1)


def test_where_bytes_are_no_batches_loading_goes_on_with_the_next_segment(log: Log) -> None:
    for number in range(100):
        append(log, record(f"n{number}", "x" * 50))
    assert log.segment_count > 3
    overwrite(log, 0, b"\xff" * 400, segment=1)
    lost = range(log.segments.base_offsets[1], log.segments.base_offsets[2])
    loader, shard = load(log)
    assert shard.texts.keys() == {f"n{number}" for number in range(100) if number not in lost}
    assert loader.damaged >= 1


def test_a_load_that_nobody_wants_any_longer_ends(log: Log) -> None:
    append(log, record("a", "1"))
    loader = ShardLoader(ToyShard(0, 0), lambda: log, piece_bytes=100, cancelled=lambda: True)
    with pytest.raises(LoadCancelled):
        loader.load_up_to(log.log_end_offset)


def test_a_log_that_moves_to_another_directory_while_it_is_loaded_is_read_to_its_new_end(tmp_path: Path) -> None:
    old, new = (LogFolder(tmp_path / name, log_config(segment_bytes=2000)).log for name in ("old", "new"))
    current = [old]

    class MovesMeanwhile(ToyShard):
        def replay_marker(self, producer: ProducerIdAndEpoch, *, committed: bool) -> None:
            super().replay_marker(producer, committed=committed)
            current[0] = new
            old.delete()
            old.directory.files.rename(old.folder, f"{old.folder}-away")

    for one in (old, new):
        append(one, record("a", "1"), producer=PRODUCER)
        end(one, PRODUCER, committed=True)
        append(one, record("b", "2"))
    shard = MovesMeanwhile(0, 0)
    loader = ShardLoader(shard, lambda: current[0], piece_bytes=1, cancelled=lambda: False)
    loader.load_up_to(old.log_end_offset)
    append(new, record("c", "3"))
    loader.load_up_to(new.log_end_offset)
    assert shard.texts == {"a": "1", "b": "2", "c": "3"}
    assert (loader.records, loader.damaged) == (3, 0)


def test_a_read_that_fails_because_the_log_has_just_moved_is_repeated_from_the_new_one(tmp_path: Path) -> None:
    old, new = (LogFolder(tmp_path / name, log_config()).log for name in ("old", "new"))
    for one in (old, new):
        append(one, record("a", "1"))
    old.delete()
    old.directory.files.rename(old.folder, f"{old.folder}-away")
    looks = iter((old, old))
    shard = ToyShard(0, 0)
    loader = ShardLoader(shard, lambda: next(looks, new), piece_bytes=100, cancelled=lambda: False)
    loader.load_up_to(new.log_end_offset)
    assert shard.texts == {"a": "1"}


def test_the_garbage_collector_waits_while_much_is_loaded_and_does_not_look_at_it_afterwards(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "FREEZE_FROM_RECORDS", 3)
    was_collecting: list[bool] = []
    real = ToyShard.replay

    def replay(shard: ToyShard, *arguments: object) -> None:
        was_collecting.append(gc.isenabled())
        real(shard, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(ToyShard, "replay", replay)
    append(log, *(record(f"n{number}", "1") for number in range(5)))
    try:
        load(log)
        assert was_collecting == [False] * 5
        assert gc.isenabled()
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()


# -- on a broker -------------------------------------------------------------------------------------------------------


def test_while_a_partition_is_loading_requests_are_refused_and_never_find_it_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        may_go_on = threading.Event()
        real = ShardLoader.load_up_to

        def load_up_to(loader: ShardLoader, end: int) -> None:
            may_go_on.wait(10)
            real(loader, end)

        async with toys(tmp_path) as made:
            made.put(a="1")
            monkeypatch.setattr(ShardLoader, "load_up_to", load_up_to)
            made.elect(made.broker.broker_id, epoch=1)
            in_progress = Said(code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            assert made.ask("a") == in_progress
            assert made.put(a="2") == in_progress
            assert made.runtime.loading_count == 1
            may_go_on.set()
            await until(lambda: made.runtime.loading_count == 0)
            assert made.ask("a") == Said("1")

    run(scenario())


def test_a_load_that_meets_a_bug_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        bugs = [MemoryError(), ZeroDivisionError()]
        real = ShardLoader.load_up_to

        def load_up_to(loader: ShardLoader, end: int) -> None:
            if bugs:
                raise bugs.pop()
            real(loader, end)

        async with toys(tmp_path) as made:
            made.put(a="1")
            monkeypatch.setattr(ShardLoader, "load_up_to", load_up_to)
            monkeypatch.setattr("kaspar.broker.coordination.runtime.RETRY_LOAD_S", 0.001)
            made.elect(made.broker.broker_id, epoch=1)
            assert made.ask("a") == Said(code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            await until(lambda: made.runtime.loading_count == 0)
            assert made.ask("a") == Said("1")

    run(scenario())


def test_a_load_whose_log_is_gone_is_tried_again_unless_it_was_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        gone = [LoadCancelled()]
        real = ShardLoader.load_up_to

        def load_up_to(loader: ShardLoader, end: int) -> None:
            if gone:
                raise gone.pop()
            real(loader, end)

        async with toys(tmp_path) as made:
            made.put(a="1")
            monkeypatch.setattr(ShardLoader, "load_up_to", load_up_to)
            monkeypatch.setattr("kaspar.broker.coordination.runtime.RETRY_LOAD_S", 0.001)
            made.elect(made.broker.broker_id, epoch=1)
            await until(lambda: made.runtime.loading_count == 0)
            assert made.ask("a") == Said("1")

    run(scenario())


def test_a_stop_does_not_wait_for_the_next_attempt_to_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        failed = threading.Event()

        def load_up_to(loader: ShardLoader, end: int) -> None:
            failed.set()
            raise ZeroDivisionError

        async with toys(tmp_path) as made:
            made.put(a="1")
            monkeypatch.setattr(ShardLoader, "load_up_to", load_up_to)
            monkeypatch.setattr("kaspar.broker.coordination.runtime.RETRY_LOAD_S", 3600.0)
            made.elect(made.broker.broker_id, epoch=1)
            await asyncio.to_thread(failed.wait, 10)
            await made.runtime.stop()

    run(scenario())


def test_what_comes_into_the_log_while_it_is_loaded_is_loaded_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        has_begun, may_go_on = threading.Event(), threading.Event()
        real = ShardLoader.load_up_to

        def load_up_to(loader: ShardLoader, end: int) -> None:
            has_begun.set()
            may_go_on.wait(10)
            real(loader, end)

        async with toys(tmp_path) as made:
            made.verify(PRODUCER)
            made.submit(lambda shard, now: shard.put(now, PRODUCER, a="1"))
            monkeypatch.setattr(ShardLoader, "load_up_to", load_up_to)
            made.elect(made.broker.broker_id, epoch=1)
            await asyncio.to_thread(has_begun.wait, 10)
            made.partition.append_marker(
                EndTransactionMarker(ControlType.COMMIT, 0),
                producer_id=PRODUCER.producer_id,
                producer_epoch=PRODUCER.producer_epoch,
                transaction_version=1,
                now_ms=NOW_MS,
            )
            may_go_on.set()
            await until(lambda: made.runtime.loading_count == 0)
            assert made.shard.texts == {"a": "1"}

    run(scenario())


def test_a_stop_waits_for_the_thread_that_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        ended = threading.Event()
        real = ShardLoader.load_up_to

        def load_up_to(loader: ShardLoader, end: int) -> None:
            try:
                real(loader, end)
            finally:
                time.sleep(0.05)  # in the thread: a caller that did not wait would be detected
                ended.set()

        async with toys(tmp_path) as made:
            made.put(a="1")
            monkeypatch.setattr(ShardLoader, "load_up_to", load_up_to)
            made.elect(made.broker.broker_id, epoch=1)
            await made.runtime.stop()
            assert ended.is_set()
            assert made.runtime.active_shards() == {}

    run(scenario())


def test_leadership_that_ends_while_a_partition_is_loaded_ends_the_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        has_begun, may_go_on = threading.Event(), threading.Event()
        real = ShardLoader.load_up_to

        def load_up_to(loader: ShardLoader, end: int) -> None:
            has_begun.set()
            may_go_on.wait(10)
            real(loader, end)

        async with toys(tmp_path) as made:
            made.put(a="1")
            monkeypatch.setattr(ShardLoader, "load_up_to", load_up_to)
            made.elect(made.broker.broker_id, epoch=1)
            await asyncio.to_thread(has_begun.wait, 10)
            made.partition.retire()
            made.runtime.follow()
            assert made.ask("a") == Said(code=ErrorCode.NOT_COORDINATOR)
            may_go_on.set()
            await made.runtime.stop()
            assert made.ask("a") == Said(code=ErrorCode.NOT_COORDINATOR)

    run(scenario())


def test_a_log_whose_truncation_is_not_finished_is_not_loaded(log: Log) -> None:
    """What it still has is not this partition's any more, and what it lacks is not damaged."""
    append(log, record("a", "removed"))
    loader = ShardLoader(ToyShard(0, 0), lambda: log, piece_bytes=1000, cancelled=lambda: False)
    log.local.truncation_due = True
    with pytest.raises(LoadCancelled):
        loader.load_up_to(1)
    assert (loader.records, loader.damaged, loader.position) == (0, 0, 0)
    log.local.truncation_due = False
    loader.load_up_to(1)
    assert loader.records == 1
