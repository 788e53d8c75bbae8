"""The appender, as producers and coordinators use it: at once, or in a thread and in order, or not at all."""

import asyncio
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode, KasparError, Refused
from kaspar.broker.produce.appender import Written
from kaspar.records import Codec
from tests.unit.broker.running import create_topic, run, running
from tests.unit.storage.logs import make_batch

PLAIN = bytes(make_batch())
COMPRESSED = bytes(make_batch([b"small"], codec=Codec.LZ4))


def test_plain_batches_are_appended_and_any_other_is_left_alone(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t")
            append, now_ms = broker.appender.append_plain, broker.clock.now_ms()
            assert append(partition, bytearray(COMPRESSED), 0, len(COMPRESSED), True, now_ms) is None
            assert partition.log.log_end_offset == 0
            written = append(partition, bytearray(PLAIN), 0, len(PLAIN), True, now_ms)
            assert written is not None
            assert written[0].base_offset == 0
            assert written[1].last_offset_delta == 0

    run(scenario())


def test_nothing_overtakes_a_batch_that_is_checked_in_a_thread(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            partition, other = await create_topic(broker, "t", 2)
            appender, now_ms = broker.appender, broker.clock.now_ms()
            outcomes: list[Written | KasparError] = []
            appender.append_later(
                partition,
                bytearray(COMPRESSED),
                acks_all=True,
                done=outcomes.append,
                failed=lambda problem: pytest.fail(str(problem)),
            )
            assert broker.backlog.waiting_count == 1
            assert appender.append_plain(partition, bytearray(PLAIN), 0, len(PLAIN), True, now_ms) is None
            assert appender.append_now(partition, bytearray(PLAIN), 0, len(PLAIN), True, now_ms) is None
            assert appender.append_now(other, bytearray(PLAIN), 0, len(PLAIN), True, now_ms) is not None
            await appender.finish()
            assert not isinstance(outcomes[0], KasparError)
            assert (broker.backlog.waiting_count, broker.backlog.waiting_bytes) == (0, 0)
            assert appender.append_plain(partition, bytearray(PLAIN), 0, len(PLAIN), True, now_ms) is not None
            assert partition.log.log_end_offset == 2

    run(scenario())


def test_a_partition_that_is_not_led_here_takes_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t")
            partition.retire()
            appender, now_ms = broker.appender, broker.clock.now_ms()
            for append in (appender.append_plain, appender.append_now):
                with pytest.raises(Refused) as refused:
                    append(partition, bytearray(PLAIN), 0, len(PLAIN), True, now_ms)
                assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
            with pytest.raises(Refused):
                appender.append_own(partition, bytearray(PLAIN), now_ms=now_ms)

    run(scenario())


def test_a_coordinators_batches_in_a_transaction_have_no_sequence(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t")
            now_ms = broker.clock.now_ms()
            producers = partition.log.producers
            verification = producers.begin_verification(
                7, 0, -1, transactional_id="id", bumps_epoch=False, now_ms=now_ms
            )
            assert verification is not None
            producers.confirm(7, verification)
            batch = make_batch(producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
            written = [
                broker.appender.append_own(partition, bytearray(batch), now_ms=now_ms, counts_sequence=False)
                for _ in range(2)
            ]
            assert [appended.base_offset for appended, _ in written] == [0, 1]
            assert not any(appended.duplicate for appended, _ in written), "it is not the producer's own batch"

    run(scenario())


def test_every_append_counts_towards_the_next_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t", flush_messages="2")
            asked: list[object] = []
            monkeypatch.setattr(broker.syncing, "ask", asked.append)
            appender, now_ms = broker.appender, broker.clock.now_ms()
            assert appender.append_plain(partition, bytearray(PLAIN), 0, len(PLAIN), True, now_ms) is None
            appender.append_now(partition, bytearray(PLAIN), 0, len(PLAIN), True, now_ms)
            assert asked == []
            appender.append_own(partition, bytearray(PLAIN), now_ms=now_ms)
            assert asked == [partition]
            await asyncio.sleep(0)

    run(scenario())
