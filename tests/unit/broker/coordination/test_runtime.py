"""A coordinator's shell: decisions carried out one by one, answers when they are committed, an answer for everyone."""

import asyncio
import functools
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode, StorageFailure
from kaspar.coordination import Decision, Now, Reply, Ticket
from kaspar.protocol.schema import Message
from kaspar.records import Codec, read_header
from kaspar.storage import Log
from tests.unit.broker.coordination.toy import (
    ME,
    OTHER,
    PRODUCER,
    TOPIC,
    Answer,
    Said,
    ToyShard,
    refused,
    texts_in,
    toys,
)
from tests.unit.broker.running import run, until

DONE = Said("done")
NO_COORDINATOR = Said(code=ErrorCode.NOT_COORDINATOR)
NOT_AVAILABLE = Said(code=ErrorCode.COORDINATOR_NOT_AVAILABLE)


def is_waiting(answer: Answer) -> bool:
    return not isinstance(answer, Message)


async def answered(answer: Answer) -> Said:
    said = answer if isinstance(answer, Message) else await answer
    assert isinstance(said, Said)
    return said


# -- decisions ---------------------------------------------------------------------------------------------------------


def test_with_one_replica_a_decision_is_answered_in_the_same_turn_of_the_loop(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with toys(tmp_path) as made:
            assert made.put(a="1") == DONE
            assert made.ask("a") == Said("1")
            assert made.shard.seen == ["loaded"]

    run(scenario())


def test_the_records_of_a_decision_are_one_batch_and_taken_in_at_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with toys(tmp_path) as made:
            made.put(a="1", b="2", c="3")
            made.put(a="4")
            assert list(texts_in(made.partition)) == [(3, [("a", "1"), ("b", "2"), ("c", "3")]), (1, [("a", "4")])]
            assert made.shard.texts == {"a": "4", "b": "2", "c": "3"}
            assert made.partition.high_watermark == 4

    run(scenario())


def test_what_a_shard_refuses_is_answered_with_its_code(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with toys(tmp_path) as made:
            answer = made.submit(lambda shard, ticket, now: shard.refuse())
            assert answer == Said(code=ErrorCode.UNKNOWN_MEMBER_ID)
            question = made.runtime.ask("a", lambda shard, now: Said(str(shard.refuse())), refused)
            assert question == Said(code=ErrorCode.UNKNOWN_MEMBER_ID)

    run(scenario())


def test_whoever_is_kept_waiting_is_answered_by_a_later_event(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with toys(tmp_path) as made:
            waiting = [made.submit(lambda shard, ticket, now: shard.hold(ticket)) for _ in range(3)]
            assert all(map(is_waiting, waiting))
            assert made.runtime.waiting_count == 3
            made.runtime.run(made.shard.partition, lambda shard, now: shard.release())
            assert [await answered(each) for each in waiting] == [Said("released")] * 3
            assert made.runtime.waiting_count == 0

    run(scenario())


def test_an_answer_to_somebody_who_is_gone_harms_nobody(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with toys(tmp_path) as made:
            gone, still_here = (made.submit(lambda shard, ticket, now: shard.hold(ticket)) for _ in range(2))
            waits = asyncio.ensure_future(answered(gone))
            await asyncio.sleep(0)
            waits.cancel()
            made.runtime.run(made.shard.partition, lambda shard, now: shard.release())
            assert await answered(still_here) == Said("released")
            assert made.runtime.waiting_count == 0

    run(scenario())


def test_an_event_that_comes_while_a_decision_is_carried_out_lines_up_behind_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with toys(tmp_path) as made:
            later: list[Answer] = []

            def perform(partition: int, action: object) -> None:
                later.append(made.put(a=f"after {action}"))
                later.append(made.ask("a"))
                made.runtime.run(partition, lambda shard, now: shard.set_timer("t", None))

            made.perform = perform

            def decide(shard: ToyShard, ticket: Ticket, now: Now) -> Decision:
                decision = shard.put(ticket, now, a="first")
                decision.actions.append("that")
                return decision

            assert made.submit(decide) == DONE
            assert [await answered(each) for each in later] == [DONE, Said("after that")]
            assert [texts for _, texts in texts_in(made.partition)] == [[("a", "first")], [("a", "after that")]]

    run(scenario())


def test_a_bug_in_an_event_that_nobody_waits_for_keeps_no_other_from_its_turn(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with toys(tmp_path) as made:

            def fails(shard: ToyShard, now: Now) -> Decision:
                raise ZeroDivisionError("a bug")

            made.runtime.run(made.shard.partition, fails)
            assert made.put(a="1") == DONE

    run(scenario())


def test_a_bug_in_a_request_is_its_callers_and_the_shard_goes_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with toys(tmp_path) as made:

            def fails(shard: ToyShard, ticket: Ticket, now: Now) -> Decision:
                raise ZeroDivisionError("a bug")

            with pytest.raises(ZeroDivisionError):
                made.submit(fails)
            assert made.put(a="1") == DONE

    run(scenario())


def put_in_transaction(text: str, shard: ToyShard, ticket: Ticket, now: Now) -> Decision:
    return shard.put(ticket, now, PRODUCER, a=text)


# -- commits -----------------------------------------------------------------------------------------------------------


def test_replies_and_actions_wait_until_the_records_are_committed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with toys(tmp_path) as made:
            made.elect(ME, OTHER)

            def decide(shard: ToyShard, ticket: Ticket, now: Now) -> Decision:
                decision = shard.put(ticket, now, a="1")
                decision.actions.append("act")
                return decision

            first = made.submit(decide)
            asked = made.ask("a")
            without_records = made.submit(lambda shard, ticket, now: Decision(replies=[Reply(ticket, DONE)]))
            assert all(map(is_waiting, (first, asked, without_records)))
            assert made.actions == []
            assert made.shard.texts == {"a": "1"}  # the next decision builds on it all the same
            made.elect(ME)
            assert await answered(first) == DONE
            assert await answered(asked) == Said("1")
            assert await answered(without_records) == DONE
            assert made.actions == [(made.shard.partition, "act")]

    run(scenario())


def test_where_a_sync_comes_before_the_commit_the_answer_waits_for_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with toys(tmp_path, configs=(("flush.messages", "1"),)) as made:
            answer = made.put(a="1")
            assert is_waiting(answer)
            assert await answered(answer) == DONE
            assert made.partition.log.recovery_point == 1

    run(scenario())


def test_who_waits_too_long_for_the_commit_is_told_and_what_is_to_be_done_is_done_when_it_comes(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with toys(tmp_path, write_timeout_ms=20) as made:
            made.elect(ME, OTHER)

            def decide(shard: ToyShard, ticket: Ticket, now: Now) -> Decision:
                decision = shard.put(ticket, now, a="1")
                decision.actions.append("act")
                return decision

            assert await answered(made.submit(decide)) == NOT_AVAILABLE
            assert made.actions == []
            made.elect(ME)
            assert made.actions == [(made.shard.partition, "act")]
            assert made.ask("a") == Said("1")

    run(scenario())


def test_without_enough_replicas_in_sync_nothing_happens_and_the_shard_is_told(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with toys(tmp_path, configs=(("min.insync.replicas", "2"),)) as made:
            made.elect(ME)
            told: list[ErrorCode] = []

            def if_refused(code: ErrorCode, now: Now) -> Decision:
                told.append(code)
                return Decision(actions=["put in order"])

            def decide(shard: ToyShard, ticket: Ticket, now: Now) -> Decision:
                decision = shard.put(ticket, now, a="1")
                decision.actions.append("act")
                decision.if_refused = if_refused
                return decision

            assert made.submit(decide) == NOT_AVAILABLE
            assert told == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
            assert [action for _, action in made.actions] == ["put in order"]
            assert made.shard.texts == {}
            assert made.partition.log.log_end_offset == 0

    run(scenario())


def test_a_decision_that_is_too_large_for_one_batch_is_not_split(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with toys(tmp_path, configs=(("max.message.bytes", "500"),)) as made:
            assert made.put(a="x" * 400, b="y" * 400) == Said(code=ErrorCode.UNKNOWN_SERVER_ERROR)
            assert made.partition.log.log_end_offset == 0
            assert made.put(a="x") == DONE

    run(scenario())


def test_a_failing_disk_ends_the_coordination_of_its_partitions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with toys(tmp_path) as made:
            waiting = made.submit(lambda shard, ticket, now: shard.hold(ticket))
            directory = str(made.partition.log.directory.path)

            def fails(log: Log, *arguments: object, **more: object) -> object:
                raise StorageFailure(directory, "the disk is gone")

            monkeypatch.setattr(Log, "append_as_leader", fails)
            made.broker.coordinators.leadership_changed = lambda topics: made.runtime.follow()  # type: ignore[method-assign]
            assert made.put(a="1") == NO_COORDINATOR
            assert await answered(waiting) == NO_COORDINATOR
            assert made.put(a="1") == NO_COORDINATOR

    run(scenario())


def test_a_batch_within_a_transaction_says_whose_it_is_and_is_not_counted_as_the_producers_own(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with toys(tmp_path) as made:
            made.verify(PRODUCER)
            for text in ("1", "2", "3"):
                made.submit(functools.partial(put_in_transaction, text))
            assert made.shard.texts == {}
            assert made.shard.pending == {PRODUCER.producer_id: {"a": "3"}}
            made.runtime.marker_written(made.shard.partition, PRODUCER, committed=True)
            assert made.shard.texts == {"a": "3"}

    run(scenario())


# -- timers ------------------------------------------------------------------------------------------------------------


def test_a_timer_wakes_its_shard_and_one_that_is_taken_back_does_not(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with toys(tmp_path) as made:
            partition, now_ms = made.shard.partition, made.broker.timers.now_ms()
            made.runtime.run(partition, lambda shard, now: shard.set_timer("taken back", now_ms + 1))
            made.runtime.run(partition, lambda shard, now: shard.set_timer("taken back", None))
            made.runtime.run(partition, lambda shard, now: shard.set_timer("kept", now_ms + 1))
            await until(lambda: bool(made.shard.fired))
            assert made.shard.fired == ["kept"]

    run(scenario())


# -- leadership --------------------------------------------------------------------------------------------------------


def test_when_leadership_ends_everyone_who_waits_is_told_and_no_timer_is_left(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with toys(tmp_path) as made:
            made.runtime.run(made.shard.partition, lambda shard, now: shard.set_timer("t", now.steady_ms + 60_000))
            held = made.submit(lambda shard, ticket, now: shard.hold(ticket))
            made.elect(ME, OTHER)
            uncommitted, asked = made.put(a="1"), made.ask("a")
            timers = len(made.broker.timers)
            made.elect(ME, OTHER, epoch=1, leader=OTHER)
            assert [await answered(each) for each in (held, uncommitted, asked)] == [NO_COORDINATOR] * 3
            assert made.put(a="2") == NO_COORDINATOR
            assert made.runtime.waiting_count == 0
            assert len(made.broker.timers) <= timers - 2

    run(scenario())


def test_in_a_new_epoch_the_shard_is_made_anew_from_the_log(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with toys(tmp_path) as made:
            made.put(a="1")
            before = made.shard
            made.elect(ME, epoch=4)
            assert made.put(a="2") == Said(code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            await until(lambda: made.runtime.loading_count == 0)
            assert made.shard is not before
            assert (made.shard.leader_epoch, made.shard.texts) == (4, {"a": "1"})

    run(scenario())


def test_a_stop_answers_everyone(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with toys(tmp_path) as made:
            held = made.submit(lambda shard, ticket, now: shard.hold(ticket))
            await made.runtime.stop()
            assert await answered(held) == NO_COORDINATOR
            assert made.put(a="1") == NO_COORDINATOR
            made.runtime.follow()
            assert made.runtime.active_shards() == {}

    run(scenario())


# -- the topic ---------------------------------------------------------------------------------------------------------


def test_the_internal_topic_is_made_once_however_many_ask_for_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with toys(tmp_path, name="__others") as made:
            await asyncio.gather(*(made.runtime.ensure_topic() for _ in range(10)))
            topic = made.broker.image.topics["__others"]
            assert (len(topic.partitions), topic.configs) == (2, {"cleanup.policy": "compact"})

    run(scenario())


def test_with_fewer_brokers_than_replicas_are_asked_for_there_are_as_many_as_brokers(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with toys(tmp_path, replication_factor=3) as made:
            assert made.broker.image.topics[TOPIC].replication_factor == 1
            assert made.put(a="1") == DONE

    run(scenario())


def test_keys_are_spread_over_the_partitions_as_kafka_spreads_them(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with toys(tmp_path, num_partitions=50) as made:
            # Java: Math.abs("my-group".hashCode()) % 50, and the same for the others.
            assert [made.runtime.partition_of(key) for key in ("my-group", "console-consumer-1", "")] == [12, 24, 0]

    run(scenario())


def test_a_record_is_written_with_the_codec_that_the_topic_asks_for(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with toys(tmp_path, codec=Codec.ZSTD) as made:
            assert made.put(a="x" * 1000) == DONE
            assert read_header(made.partition.log.read(0, 1000, 1), 0).codec is Codec.ZSTD

    run(scenario())
