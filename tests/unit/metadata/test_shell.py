"""The controller over a store: commits before it answers, survives unknown outcomes, is fenced by its successor."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import BrokerId
from kaspar.metadata import layout
from kaspar.metadata import shell as shell_module
from kaspar.metadata.controller import Controller
from kaspar.metadata.events import (
    DONE,
    AllocateProducerIds,
    AlterConfigs,
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    LogsRemoved,
    MorePartitions,
    NewTopic,
    ResourceType,
    TopicReference,
)
from kaspar.metadata.faults import Fault, FaultyStore
from kaspar.metadata.image import ClusterImage
from kaspar.metadata.loading import load_brokers, load_image, prepare_store
from kaspar.metadata.shell import ControllerShell, register_broker
from kaspar.metadata.sqlite import SqliteMetadata
from kaspar.metadata.store import Store, StoreFull
from tests.unit.metadata.clusters import broker, controller
from tests.unit.metadata.stores import until, within

ONE = BrokerId(1)


@asynccontextmanager
async def running(
    store: Store, core: Controller | None = None, *, clean: bool = True
) -> AsyncIterator[ControllerShell]:
    """A controller in the broker with id 1, which is up."""
    await prepare_store(store)
    await register_broker(store, broker(1, clean_start=clean), retry_delay_s=0)
    shell = ControllerShell(store, core or controller(), retry_delay_s=0)
    await shell.start()
    try:
        yield shell
    finally:
        await shell.stop()


async def stored(metadata: SqliteMetadata) -> ClusterImage:
    """The image as another controller would load it."""
    store = metadata.connect()
    image = await load_image(store)
    brokers = await load_brokers(store)
    await store.close()
    return type(image)(**{**{field: getattr(image, field) for field in image.__slots__}, "brokers": brokers})


def run(scenario: Callable[[SqliteMetadata], object], folder: Path) -> None:
    async def main() -> None:
        metadata = await SqliteMetadata.open(folder)
        try:
            result = scenario(metadata)
            assert asyncio.iscoroutine(result)
            await within(20, result)
        finally:
            await metadata.close()

    asyncio.run(main())


def test_what_is_answered_is_stored_and_published(tmp_path: Path) -> None:
    async def scenario(metadata: SqliteMetadata) -> None:
        published: list[tuple[ClusterImage, ClusterImage, frozenset[str]]] = []
        async with running(metadata.connect()) as shell:
            shell.add_listener(lambda old, new, topics: published.append((old, new, topics)))
            (created,) = await shell.submit(CreateTopics((NewTopic("t", 1200, configs=(("segment.ms", "5"),)),)))
            assert created.outcome == DONE
            assert await stored(metadata) == shell.image
            old, new, topics = published[-1]
            assert "t" not in old.topics
            assert new is shell.image
            assert topics == {"t"}
            await shell.submit(CreatePartitions((MorePartitions("t", 1300),)))
            operation = ConfigOperation.set("max.connections", "5")
            change = ConfigChange(ConfigResource(ResourceType.BROKER, ""), (operation,))
            await shell.submit(AlterConfigs((change,)))
            of_topic = ConfigChange(ConfigResource(ResourceType.TOPIC, "t"), (ConfigOperation.set("segment.ms", "6"),))
            await shell.submit(AlterConfigs((of_topic,)))
            assert shell.image.topics["t"].configs == {"segment.ms": "6"}
            assert await stored(metadata) == shell.image
            await shell.submit(AllocateProducerIds(ONE))
            await shell.submit(DeleteTopics((TopicReference("t"),)))
            assert len(published) == 6
            assert await stored(metadata) == shell.image
            await shell.submit(LogsRemoved(ONE, (created.topic_id,)))
            assert shell.image.deleted_topics == {}
            assert await stored(metadata) == shell.image

    run(scenario, tmp_path)


def test_an_answer_waits_for_the_listeners(tmp_path: Path) -> None:
    async def scenario(metadata: SqliteMetadata) -> None:
        may_go_on = asyncio.Event()

        async def make_logs(old: ClusterImage, new: ClusterImage, topics: frozenset[str]) -> None:
            await may_go_on.wait()

        async with running(metadata.connect()) as shell:
            shell.add_listener(make_logs)
            creating = asyncio.create_task(shell.submit(CreateTopics((NewTopic("t"),))))
            is_made = asyncio.Event()
            store = metadata.connect()
            if await store.get(layout.topic_path("t"), lambda path: is_made.set()) is None:
                await is_made.wait()
            assert not creating.done()
            may_go_on.set()
            await creating

    run(scenario, tmp_path)


def test_the_cluster_keeps_its_id_and_the_controller_epoch_grows(tmp_path: Path) -> None:
    async def scenario(metadata: SqliteMetadata) -> None:
        seen = []
        for _ in range(3):
            store = metadata.connect()
            async with running(store) as shell:
                seen.append((shell.image.cluster_id, shell.image.controller_epoch, shell.image.controller_id))
            await store.close()
        assert [epoch for _, epoch, _ in seen] == [1, 2, 3]
        assert {(cluster_id, controller_id) for cluster_id, _, controller_id in seen} == {(seen[0][0], ONE)}
        assert len(seen[0][0]) == 22

    run(scenario, tmp_path)


def scripted(*faults: Fault) -> Callable[[], Fault]:
    script: Iterator[Fault] = iter(faults)
    return lambda: next(script, Fault.NONE)


@pytest.mark.parametrize("fault", [Fault.NOT_SENT, Fault.NO_ANSWER])
@pytest.mark.parametrize("times", [1, 3])
def test_an_unknown_outcome_is_found_out_and_the_change_made_once(tmp_path: Path, fault: Fault, times: int) -> None:
    async def scenario(metadata: SqliteMetadata) -> None:
        store = FaultyStore(metadata.connect())
        async with running(store) as shell:
            for number in range(3):
                store.choose = scripted(*[fault] * times)
                (created,) = await shell.submit(CreateTopics((NewTopic(f"t{number}"),)))
                assert created.outcome == DONE
                block = await shell.submit(AllocateProducerIds(ONE))
                assert block.first == number * block.count
            assert await stored(metadata) == shell.image
            assert set(shell.image.topics) == {"t0", "t1", "t2"}

    run(scenario, tmp_path)


@pytest.mark.parametrize("fault", [Fault.NOT_SENT, Fault.NO_ANSWER])
def test_the_start_survives_unknown_outcomes(tmp_path: Path, fault: Fault) -> None:
    async def scenario(metadata: SqliteMetadata) -> None:
        await prepare_store(metadata.connect())
        for position in range(12):
            inner = metadata.connect()
            store = FaultyStore(inner, scripted(*[Fault.NONE] * position, fault, Fault.NONE, fault))
            registration = await register_broker(store, broker(1), retry_delay_s=0)
            shell = ControllerShell(store, controller(seed=position), retry_delay_s=0)
            image = await shell.start()
            assert image.brokers == {ONE: registration}
            await shell.submit(CreateTopics((NewTopic(f"t{position}"),)))
            assert await stored(metadata) == shell.image
            await shell.stop()
            await store.close()

    run(scenario, tmp_path)


@pytest.mark.parametrize("fault", [Fault.SESSION_LOST, Fault.SESSION_LOST_AFTER])
def test_a_lost_session_ends_the_controller_and_the_next_one_finds_a_sound_store(tmp_path: Path, fault: Fault) -> None:
    async def scenario(metadata: SqliteMetadata) -> None:
        store = FaultyStore(metadata.connect())
        async with running(store) as shell:
            store.choose = scripted(fault)
            with pytest.raises(Refused) as refused:
                await shell.submit(CreateTopics((NewTopic("t"),)))
            assert refused.value.code == ErrorCode.NOT_CONTROLLER
            await shell.ended.wait()
            with pytest.raises(Refused):
                await shell.submit(AllocateProducerIds(ONE))
        async with running(metadata.connect()) as successor:
            assert ("t" in successor.image.topics) == (fault is Fault.SESSION_LOST_AFTER)
            assert await stored(metadata) == successor.image

    run(scenario, tmp_path)


def test_an_older_controller_is_fenced_by_its_successor(tmp_path: Path) -> None:
    async def scenario(metadata: SqliteMetadata) -> None:
        async with running(metadata.connect()) as old:
            await old.submit(CreateTopics((NewTopic("before"),)))
            new = ControllerShell(metadata.connect(), controller(seed=1), retry_delay_s=0)
            await new.start()
            with pytest.raises(Refused) as refused:
                await old.submit(CreateTopics((NewTopic("late"),)))
            assert refused.value.code == ErrorCode.NOT_CONTROLLER
            assert old.ended.is_set()
            await new.submit(CreateTopics((NewTopic("after"),)))
            assert set(new.image.topics) == {"before", "after"}
            assert await stored(metadata) == new.image
            await new.stop()

    run(scenario, tmp_path)


def test_no_space_left_refuses_the_change_and_the_controller_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class FullStore(FaultyStore):
        full = False

        async def transact(self, operations: object) -> None:
            if self.full:
                raise StoreFull("no space left")
            assert isinstance(operations, list)
            await super().transact(operations)

    async def scenario(metadata: SqliteMetadata) -> None:
        store = FullStore(metadata.connect())
        async with running(store) as shell:
            store.full = True
            for _ in range(2):
                with pytest.raises(Refused) as refused:
                    await shell.submit(CreateTopics((NewTopic("t"),)))
                assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
            assert caplog.text.count("changes are refused until the metadata store has space") == 1
            store.full = False
            (created,) = await shell.submit(CreateTopics((NewTopic("t"),)))
            assert created.outcome == DONE

    run(scenario, tmp_path)


def test_brokers_that_come_and_go_are_seen_through_late_watches(tmp_path: Path) -> None:
    async def scenario(metadata: SqliteMetadata) -> None:
        store = FaultyStore(metadata.connect())
        changed = asyncio.Event()
        async with running(store) as shell:
            shell.add_listener(lambda old, new, topics: changed.set())
            others = [metadata.connect() for _ in range(3)]
            for number, other in enumerate(others, start=2):
                await register_broker(other, broker(number))
            assert set(shell.image.brokers) == {1}, "the watches are held back"
            store.deliver_watches()
            await changed.wait()
            assert set(shell.image.brokers) == {1, 2, 3, 4}
            changed.clear()
            await others[0].close()
            await others[2].close()
            # The shell set its watch again when it looked; it fires for whichever went first.
            while set(shell.image.brokers) != {1, 3}:
                store.deliver_watches()
                await asyncio.sleep(0)
            assert await stored(metadata) == shell.image

    run(scenario, tmp_path)


def test_a_broker_id_can_be_registered_once(tmp_path: Path) -> None:
    async def scenario(metadata: SqliteMetadata) -> None:
        first, second = metadata.connect(), metadata.connect()
        await prepare_store(first)
        registered = await register_broker(first, broker(1))
        assert registered.epoch > 0
        with pytest.raises(Refused) as refused:
            await register_broker(second, broker(1))
        assert refused.value.code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
        await first.close()
        again = await register_broker(second, broker(1))
        assert again.epoch > registered.epoch

    run(scenario, tmp_path)


def test_events_that_wait_when_the_controller_stops_are_refused(tmp_path: Path) -> None:
    async def scenario(metadata: SqliteMetadata) -> None:
        async def never(old: ClusterImage, new: ClusterImage, topics: frozenset[str]) -> None:
            await asyncio.Event().wait()

        async with running(metadata.connect()) as shell:
            shell.add_listener(never)
            waiting = [asyncio.create_task(shell.submit(AllocateProducerIds(ONE))) for _ in range(1500)]
            await asyncio.sleep(0)
            await shell.stop()
            results = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(result, Refused) and result.code == ErrorCode.NOT_CONTROLLER for result in results)

    run(scenario, tmp_path)


def test_a_listener_that_fails_is_told_to_whoever_asked_and_the_next_event_is_served(tmp_path: Path) -> None:
    async def scenario(metadata: SqliteMetadata) -> None:
        def fail(old: ClusterImage, new: ClusterImage, topics: frozenset[str]) -> None:
            if "bad" in topics:
                raise ZeroDivisionError

        async with running(metadata.connect()) as shell:
            shell.add_listener(fail)
            with pytest.raises(ZeroDivisionError):
                await shell.submit(CreateTopics((NewTopic("bad"),)))
            (created,) = await shell.submit(CreateTopics((NewTopic("good"),)))
            assert created.outcome == DONE
            assert await stored(metadata) == shell.image

    run(scenario, tmp_path)


def test_what_a_listener_failed_to_carry_out_is_told_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(metadata: SqliteMetadata) -> None:
        monkeypatch.setattr(shell_module, "LOOK_AT_FENCE_S", 0.001)
        told: list[frozenset[str]] = []

        def fail_twice(old: ClusterImage, new: ClusterImage, topics: frozenset[str]) -> None:
            told.append(topics)
            if len(told) < 3:
                raise ZeroDivisionError

        async with running(metadata.connect()) as shell:
            shell.add_listener(fail_twice)
            with pytest.raises(ZeroDivisionError):
                await shell.submit(CreateTopics((NewTopic("t"),)))
            await until(lambda: len(told) == 3)
            await shell.submit(CreateTopics((NewTopic("other"),)))
            assert told == [{"t"}, {"t"}, {"t"}, {"other"}]

    run(scenario, tmp_path)
