"""A coordinator's shell: decisions run one by one, responses wait for the commit, every request gets one."""

import asyncio
import functools
from dataclasses import replace
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode, Refused, StorageFailure
from kaspar.broker.coordination.internal_topics import InternalTopic
from kaspar.broker.coordination.runtime import Runtime
from kaspar.coordination import Decision, EncodedRecord, Now
from kaspar.protocol.schema import Message
from kaspar.records import Codec, read_header
from kaspar.storage import Log
from tests.unit.broker.coordination.toy import (
    KINDS,
    ME,
    OTHER,
    PRODUCER,
    TOPIC,
    Response,
    Said,
    ToyShard,
    refused,
    stored,
    texts_in,
    toys,
)
from tests.unit.broker.running import run, until

DONE = Said("done")
NO_COORDINATOR = Said(code=ErrorCode.NOT_COORDINATOR)
NOT_AVAILABLE = Said(code=ErrorCode.COORDINATOR_NOT_AVAILABLE)


def is_waiting(response: Response) -> bool:
    return not isinstance(response, Message)


async def awaited(response: Response) -> Said:
    said = response if isinstance(response, Message) else await response
    assert isinstance(said, Said)
    return said


# -- decisions ---------------------------------------------------------------------------------------------------------


def test_with_one_replica_a_decision_gets_its_response_in_the_same_turn_of_the_loop(tmp_path: Path) -> None:
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


def test_a_refusal_by_a_shard_becomes_a_response_with_its_code(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with toys(tmp_path) as made:
            response = made.submit(lambda shard, now: shard.refuse())
            assert response == Said(code=ErrorCode.UNKNOWN_MEMBER_ID)
            question = made.runtime.ask("a", lambda shard, now: Said(str(shard.refuse())), refused)
            assert question == Said(code=ErrorCode.UNKNOWN_MEMBER_ID)

    run(scenario())


def test_a_held_request_gets_its_response_from_a_later_event(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with toys(tmp_path) as made:
            waiting = [made.hold() for _ in range(3)]
            assert all(map(is_waiting, waiting))
            assert made.runtime.waiting_count == 3
            made.runtime.run(made.shard.partition, lambda shard, now: shard.release())
            assert [await awaited(each) for each in waiting] == [Said("released")] * 3
            assert made.runtime.waiting_count == 0

    run(scenario())


def test_a_response_to_a_closed_connection_has_no_effect(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with toys(tmp_path) as made:
            gone, still_here = (made.hold() for _ in range(2))
            waits = asyncio.ensure_future(awaited(gone))
            await asyncio.sleep(0)
            waits.cancel()
            made.runtime.run(made.shard.partition, lambda shard, now: shard.release())
            assert await awaited(still_here) == Said("released")
            assert made.runtime.waiting_count == 0

    run(scenario())


def test_an_event_that_comes_while_a_decision_is_carried_out_lines_up_behind_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with toys(tmp_path) as made:
            later: list[Response] = []

            def perform(partition: int, action: object) -> None:
                later.append(made.put(a=f"after {action}"))
                later.append(made.ask("a"))
                made.runtime.run(partition, lambda shard, now: shard.set_timer("t", None))

            made.perform = perform

            def decide(shard: ToyShard, now: Now) -> Decision:
                decision = shard.put(now, a="first")
                decision.add_action("that")
                return decision

            assert made.submit(decide) == DONE
            assert [await awaited(each) for each in later] == [DONE, Said("after that")]
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

            def fails(shard: ToyShard, now: Now) -> Decision:
                raise ZeroDivisionError("a bug")

            with pytest.raises(ZeroDivisionError):
                made.submit(fails)
            assert made.put(a="1") == DONE

    run(scenario())


def put_in_transaction(text: str, shard: ToyShard, now: Now) -> Decision:
    return shard.put(now, PRODUCER, a=text)


# -- requests that are carried out now or not at all -------------------------------------------------------------------


def test_a_request_that_can_be_carried_out_now_is_and_its_response_returned(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with toys(tmp_path) as made:
            assert made.runtime.try_now("a", lambda shard, now: shard.put(now, a="1")) == DONE
            assert made.shard.texts == {"a": "1"}

    run(scenario())


def test_a_record_that_is_encoded_already_is_appended_as_it_is_and_replays_itself(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with toys(tmp_path) as made:
            key, value = KINDS.encode(stored("a", "encoded"))
            assert value is not None
            replayed: list[str] = []
            record = EncodedRecord((key, value), lambda: replayed.append("a"))
            decide = functools.partial(lambda one, shard, now: Decision((one, stored("b", "2")), DONE), record)
            assert made.runtime.try_now("a", decide) == DONE
            assert list(texts_in(made.partition)) == [(2, [("a", "encoded"), ("b", "2")])]
            assert (replayed, made.shard.texts) == (["a"], {"b": "2"})

    run(scenario())


def test_what_would_have_to_wait_for_other_replicas_is_not_begun(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with toys(tmp_path) as made:
            made.elect(ME, OTHER)
            assert made.runtime.try_now("a", lambda shard, now: shard.put(now, a="1")) is None
            assert made.partition.log.log_end_offset == 0
            made.elect(ME, OTHER, epoch=1, leader=OTHER)
            assert made.runtime.try_now("a", lambda shard, now: shard.put(now, a="1")) is None

    run(scenario())


def test_what_would_have_to_wait_for_a_sync_is_not_begun(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with toys(tmp_path, configs=(("flush.messages", "1"),)) as made:
            assert made.runtime.try_now("a", lambda shard, now: shard.put(now, a="1")) is None
            assert made.partition.log.log_end_offset == 0

    run(scenario())


def test_what_the_shard_or_the_log_refuses_changes_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with toys(tmp_path, configs=(("max.message.bytes", "10"),)) as made:
            undone: list[ErrorCode] = []

            def undo(code: ErrorCode, now: Now) -> Decision:
                undone.append(code)
                return Decision()

            def decide(shard: ToyShard, now: Now) -> Decision:
                decision = shard.put(now, a="1")
                decision.if_refused = undo
                return decision

            assert made.runtime.try_now("a", decide) is None
            assert undone == [ErrorCode.UNKNOWN_SERVER_ERROR]
            assert made.runtime.try_now("a", lambda shard, now: shard.refuse()) is None
            assert (made.shard.texts, made.partition.log.log_end_offset) == ({}, 0)

    run(scenario())


def test_what_comes_while_a_decision_is_carried_out_is_not_begun(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with toys(tmp_path) as made:
            tried: list[Message | None] = []

            def perform(partition: int, action: object) -> None:
                tried.append(made.runtime.try_now("a", lambda shard, now: shard.put(now, a="2")))

            made.perform = perform

            def decide(shard: ToyShard, now: Now) -> Decision:
                decision = shard.put(now, a="1")
                decision.add_action("act")
                return decision

            assert made.submit(decide) == DONE
            assert tried == [None]
            assert made.shard.texts == {"a": "1"}

    run(scenario())


# -- commits -----------------------------------------------------------------------------------------------------------


def test_replies_and_actions_wait_until_the_records_are_committed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with toys(tmp_path) as made:
            made.elect(ME, OTHER)

            def decide(shard: ToyShard, now: Now) -> Decision:
                decision = shard.put(now, a="1")
                decision.add_action("act")
                return decision

            first = made.submit(decide)
            asked = made.ask("a")
            without_records = made.submit(lambda shard, now: Decision(response=DONE))
            assert all(map(is_waiting, (first, asked, without_records)))
            assert made.actions == []
            assert made.shard.texts == {"a": "1"}  # the next decision builds on it all the same
            made.elect(ME)
            assert await awaited(first) == DONE
            assert await awaited(asked) == Said("1")
            assert await awaited(without_records) == DONE
            assert made.actions == [(made.shard.partition, "act")]

    run(scenario())


def test_where_a_sync_comes_before_the_commit_the_response_waits_for_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with toys(tmp_path, configs=(("flush.messages", "1"),)) as made:
            response = made.put(a="1")
            assert is_waiting(response)
            assert await awaited(response) == DONE
            assert made.partition.log.recovery_point == 1

    run(scenario())


def test_a_wait_for_the_commit_times_out_and_its_actions_run_when_the_commit_comes(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with toys(tmp_path, write_timeout_ms=20) as made:
            made.elect(ME, OTHER)

            def decide(shard: ToyShard, now: Now) -> Decision:
                decision = shard.put(now, a="1")
                decision.add_action("act")
                return decision

            assert await awaited(made.submit(decide)) == NOT_AVAILABLE
            assert made.actions == []
            made.elect(ME)
            assert made.actions == [(made.shard.partition, "act")]
            assert made.ask("a") == Said("1")

    run(scenario())


def test_without_enough_replicas_in_sync_nothing_is_appended_and_the_shard_is_notified(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with toys(tmp_path, configs=(("min.insync.replicas", "2"),)) as made:
            made.elect(ME)
            reported: list[ErrorCode] = []

            def if_refused(code: ErrorCode, now: Now) -> Decision:
                reported.append(code)
                return Decision(actions=["put in order"])

            def decide(shard: ToyShard, now: Now) -> Decision:
                decision = shard.put(now, a="1")
                decision.add_action("act")
                decision.if_refused = if_refused
                return decision

            assert made.submit(decide) == NOT_AVAILABLE
            assert reported == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
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
            waiting = made.hold()
            directory = str(made.partition.log.directory.path)

            def fails(log: Log, *arguments: object, **more: object) -> object:
                raise StorageFailure(directory, "the disk is gone")

            monkeypatch.setattr(Log, "append_as_leader", fails)
            made.broker.coordinators.leadership_changed = lambda topics: made.runtime.follow()  # type: ignore[method-assign]
            assert made.put(a="1") == NO_COORDINATOR
            assert await awaited(waiting) == NO_COORDINATOR
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


def test_when_leadership_ends_all_waiting_requests_complete_and_no_timer_is_left(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with toys(tmp_path) as made:
            made.runtime.run(made.shard.partition, lambda shard, now: shard.set_timer("t", now.steady_ms + 60_000))
            held = made.hold()
            made.elect(ME, OTHER)
            uncommitted, asked = made.put(a="1"), made.ask("a")
            timers = len(made.broker.timers)
            made.elect(ME, OTHER, epoch=1, leader=OTHER)
            assert [await awaited(each) for each in (held, uncommitted, asked)] == [NO_COORDINATOR] * 3
            assert made.put(a="2") == NO_COORDINATOR
            assert made.runtime.waiting_count == 0
            assert len(made.broker.timers) <= timers - 2

    run(scenario())


def test_in_a_new_epoch_the_shard_is_rebuilt_from_the_log(tmp_path: Path) -> None:
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


def test_a_stop_completes_every_request(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with toys(tmp_path) as made:
            held = made.hold()
            await made.runtime.stop()
            assert await awaited(held) == NO_COORDINATOR
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


@pytest.mark.parametrize(("brokers", "is_created"), [(2, False), (3, True)])
def test_in_a_cluster_the_internal_topic_is_created_when_there_are_enough_brokers(
    brokers: int, is_created: bool
) -> None:
    topic = InternalTopic(TOPIC, 2, 3, (), Codec.NONE, 4096, 5000)
    if is_created:
        assert topic.to_create(brokers, is_clustered=True).replication_factor == 3
    else:
        with pytest.raises(Refused) as refused:
            topic.to_create(brokers, is_clustered=True)
        assert refused.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_who_looks_for_a_coordinator_before_there_are_enough_brokers_is_to_retry(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with toys(tmp_path) as made:
            services = replace(made.broker.coordinators.services, is_clustered=True)
            topic = replace(made.runtime.topic, name="__more_toys", replication_factor=2)
            runtime = Runtime(services, topic, ToyShard, lambda partition, action: None)
            with pytest.raises(Refused) as refused:
                await runtime.ensure_topic()
            assert refused.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
            assert "__more_toys" not in made.broker.image.topics

    run(scenario())


# -- cluster -----------------------------------------------------------------------------------------------------------


def test_a_broker_out_of_touch_with_the_controller_coordinates_nothing(tmp_path: Path) -> None:
    """Another one may do so by now, and know more."""

    async def scenario() -> None:
        async with toys(tmp_path) as made:
            in_touch = True
            services = replace(made.broker.coordinators.services, in_touch=lambda: in_touch)
            made.runtime._services = services
            made.put(a="1")
            in_touch = False
            assert made.ask("a") == NO_COORDINATOR
            assert made.put(a="2") == NO_COORDINATOR
            assert made.hold() == NO_COORDINATOR
            assert made.runtime.try_now("a", lambda shard, now: shard.put(now, a="3")) is None
            assert made.runtime.why_not_listed() is ErrorCode.COORDINATOR_NOT_AVAILABLE
            with pytest.raises(Refused):
                made.runtime.check_active(made.partition.topic_partition.partition)
            in_touch = True
            assert made.ask("a") == Said("1")
            assert made.runtime.why_not_listed() is ErrorCode.NONE

    run(scenario())


def test_a_shard_serves_when_all_that_it_has_loaded_is_committed(tmp_path: Path) -> None:
    """Its predecessor may not have reported the last records as committed, and may yet be asked what it knows."""

    async def scenario() -> None:
        async with toys(tmp_path) as made:
            made.put(a="1")
            made.elect(ME, OTHER, epoch=1)
            await until(lambda: isinstance(made.ask("a"), Message) and made.ask("a") == Said("1"))
            waiting = made.put(a="2")
            assert is_waiting(waiting)
            made.elect(ME, OTHER, epoch=2)
            assert await awaited(waiting) == NO_COORDINATOR, "nobody is told that it is done"
            loading = Said(code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            for _ in range(20):
                assert made.ask("a") == loading
                await asyncio.sleep(0.001)
            assert made.runtime.why_not_listed() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            made.elect(ME, epoch=2)
            await until(lambda: made.ask("a") == Said("2"))

    run(scenario())


def test_a_shard_that_waits_for_the_commit_is_given_up_with_its_leadership(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with toys(tmp_path) as made:
            made.put(a="1")
            made.elect(ME, OTHER, epoch=1)
            await until(lambda: made.ask("a") == Said("1"))
            made.put(a="2")
            made.elect(ME, OTHER, epoch=2)
            await asyncio.sleep(0.01)
            made.elect(OTHER, epoch=3, leader=OTHER)
            assert made.ask("a") == NO_COORDINATOR
            await until(lambda: not made.runtime._loads)

    run(scenario())


def test_on_the_embedded_store_an_internal_topic_has_one_replica_whatever_is_asked_for(tmp_path: Path) -> None:
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
