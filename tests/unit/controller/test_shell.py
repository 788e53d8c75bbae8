"""The controller over a store: commits before it responds, survives unknown outcomes, is fenced by its successor."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import BrokerId
from kaspar.controller import shell as shell_module
from kaspar.controller.controller import Controller
from kaspar.controller.decision import Decision
from kaspar.controller.events import (
    DONE,
    AllocateProducerIds,
    AlterConfigs,
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    ControllerEvent,
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    FenceBrokers,
    LogsRemoved,
    MorePartitions,
    NewTopic,
    ResourceType,
    TopicReference,
)
from kaspar.controller.registration import register_broker
from kaspar.controller.shell import ControllerShell
from kaspar.metadata.faults import Fault, FaultyStore
from kaspar.metadata.image import ClusterImage
from kaspar.metadata.images import ImageUpdate
from kaspar.metadata.layout import broker_nodes, controller_nodes, store_paths
from kaspar.metadata.loading import load_brokers, load_image, prepare_store
from kaspar.metadata.sqlite import SqliteMetadata
from kaspar.metadata.store import Operation, Store, StoreFull
from tests.unit.controller.clusters import broker, controller, vacated
from tests.unit.metadata.stores import within

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


def test_the_first_image_of_a_controller_shows_the_brokers_that_are_up(tmp_path: Path) -> None:
    """Its own broker serves clients, which would forget every broker that an image lacks."""

    async def scenario(metadata: SqliteMetadata) -> None:
        async with running(metadata.connect()) as shell:
            await shell.submit(CreateTopics((NewTopic("t", 3),)))
        successor = ControllerShell(await vacated(metadata.connect()), controller(), retry_delay_s=0)
        published: list[ImageUpdate] = []
        successor.add_follower(published.append)
        await successor.start()
        (first,) = published
        assert set(first.image.brokers) == {ONE}
        assert {each.leader for each in first.image.topics["t"].partitions} == {ONE}
        assert first.changed_topics == {"t"}, "it is whole: an earlier controller's image may have been another one"
        await successor.stop()

    run(scenario, tmp_path)


def test_an_acknowledged_change_is_stored_and_published(tmp_path: Path) -> None:
    async def scenario(metadata: SqliteMetadata) -> None:
        published: list[ImageUpdate] = []
        async with running(metadata.connect()) as shell:
            shell.add_follower(published.append)
            assert [update.image for update in published] == [shell.image], "a new follower gets the whole image"
            (created,) = await shell.submit(CreateTopics((NewTopic("t", 1200, configs=(("segment.ms", "5"),)),)))
            assert created.outcome == DONE
            assert await stored(metadata) == shell.image
            before, update = published[-2:]
            assert "t" not in before.image.topics
            assert update.image is shell.image
            assert update.changed_topics == {"t"}
            assert update.deleted_topics == ()
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
            assert len(published) == 7
            assert [deleted.topic_id for deleted in published[-1].deleted_topics] == [created.topic_id]
            assert published == sorted(published, key=lambda update: update.version)
            assert await stored(metadata) == shell.image
            await shell.submit(LogsRemoved(ONE, (created.topic_id,)))
            assert shell.image.deleted_topics == {}
            assert await stored(metadata) == shell.image

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


@pytest.mark.parametrize("fault", [Fault.NOT_SENT, Fault.NO_RESPONSE])
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


@pytest.mark.parametrize("fault", [Fault.NOT_SENT, Fault.NO_RESPONSE])
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
            new = ControllerShell(await vacated(metadata.connect()), controller(seed=1), retry_delay_s=0)
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
            assert caplog.text.count("changes are rejected until the metadata store has space") == 1
            store.full = False
            (created,) = await shell.submit(CreateTopics((NewTopic("t"),)))
            assert created.outcome == DONE

    run(scenario, tmp_path)


def test_brokers_that_come_and_go_are_seen_through_late_watches(tmp_path: Path) -> None:
    async def scenario(metadata: SqliteMetadata) -> None:
        store = FaultyStore(metadata.connect())
        changed = asyncio.Event()
        async with running(store) as shell:
            shell.add_follower(lambda update: changed.set())
            changed.clear()
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


def test_fencing_a_broker_that_has_just_left_by_itself_does_no_harm(tmp_path: Path) -> None:
    """Its registration is gone, and the controller has not seen that yet."""

    async def scenario(metadata: SqliteMetadata) -> None:
        async with running(FaultyStore(metadata.connect())) as shell:  # holds watches back
            other = metadata.connect()
            await register_broker(other, broker(2), retry_delay_s=0)
            await shell.look_at_brokers()
            second = shell.image.brokers[BrokerId(2)]
            await other.transact([broker_nodes.fencing(second)])
            await shell.submit(FenceBrokers(((second.broker_id, second.epoch),)))
            assert set(shell.image.brokers) == {ONE}
            (created,) = await shell.submit(CreateTopics((NewTopic("t", 1),)))
            assert created.outcome == DONE
            await other.close()

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
        assert "every broker needs its own node.id" in str(refused.value)
        await first.close()
        again = await register_broker(second, broker(1))
        assert again.epoch > registered.epoch

    run(scenario, tmp_path)


def test_events_that_wait_when_the_controller_stops_are_refused(tmp_path: Path) -> None:
    class HangingStore(FaultyStore):
        hangs = False

        async def transact(self, operations: Sequence[Operation]) -> None:
            if self.hangs:
                await asyncio.Event().wait()
            await super().transact(operations)

    async def scenario(metadata: SqliteMetadata) -> None:
        store = HangingStore(metadata.connect())
        async with running(store) as shell:
            store.hangs = True
            waiting = [asyncio.create_task(shell.submit(AllocateProducerIds(ONE))) for _ in range(1500)]
            await asyncio.sleep(0)
            await shell.stop()
            results = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(result, Refused) and result.code == ErrorCode.NOT_CONTROLLER for result in results)

    run(scenario, tmp_path)


def test_a_controller_leaves_its_seat_to_another_broker(tmp_path: Path) -> None:
    async def scenario(metadata: SqliteMetadata) -> None:
        store = metadata.connect()
        async with running(store) as shell:
            epoch = shell.image.controller_epoch
            await shell.resign(BrokerId(2))
            assert shell.ended.is_set()
            assert await store.get(store_paths.CONTROLLER_SEAT) is None
            fence = await store.get(store_paths.FENCE)
            assert fence is not None
            assert [controller_nodes.may_claim(fence.value, BrokerId(each)) for each in (1, 2, 3)] == [
                False,
                True,
                False,
            ]
            with pytest.raises(Refused) as refused:
                await shell.submit(CreateTopics((NewTopic("t", 1),)))
            assert refused.value.code is ErrorCode.NOT_CONTROLLER
        successor = ControllerShell(metadata.connect(), controller(node_id="2"), retry_delay_s=0)
        await successor.start()
        assert (successor.image.controller_id, successor.image.controller_epoch) == (2, epoch + 1)
        fence = await store.get(store_paths.FENCE)
        assert fence is not None
        assert controller_nodes.may_claim(fence.value, ONE), "the next time the seat is anybody's"
        await successor.stop()

    run(scenario, tmp_path)


def test_a_seat_left_to_any_other_broker_is_not_claimed_by_the_one_that_left_it(tmp_path: Path) -> None:
    async def scenario(metadata: SqliteMetadata) -> None:
        store = metadata.connect()
        async with running(store) as shell:
            await shell.resign(None)
            fence = await store.get(store_paths.FENCE)
            assert fence is not None
            assert [controller_nodes.may_claim(fence.value, BrokerId(each)) for each in (1, 2, 3)] == [
                False,
                True,
                True,
            ]

    run(scenario, tmp_path)


def test_a_fence_does_not_wait_behind_the_events_of_clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell_module, "_MAX_QUEUED_EVENTS", 20)

    async def scenario(metadata: SqliteMetadata) -> None:
        done: list[str] = []

        async def submitted(event: ControllerEvent[Any], name: str) -> None:
            await shell.submit(event)
            done.append(name)

        async with running(metadata.connect()) as shell:
            clients = [asyncio.create_task(submitted(AllocateProducerIds(ONE), "client")) for _ in range(30)]
            await asyncio.sleep(0)  # more than there is room for
            fence = asyncio.create_task(submitted(FenceBrokers(((BrokerId(2), 7),)), "fence"))
            await fence
            assert len(done) <= 2, "the one that was being handled, and the fence"
            await asyncio.gather(*clients)
            assert done.count("client") == 30

    run(scenario, tmp_path)


def test_decisions_about_many_partitions_are_made_in_a_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell_module, "DECIDED_INLINE_PARTITIONS", 10)
    decided_in: list[threading.Thread] = []

    class Watched(Controller):
        def decide(self, image: ClusterImage, event: ControllerEvent[Any]) -> Decision[Any]:
            decided_in.append(threading.current_thread())
            return super().decide(image, event)

    async def scenario(metadata: SqliteMetadata) -> None:
        core = Watched(controller()._settings)
        async with running(metadata.connect(), core) as shell:
            await shell.submit(CreateTopics((NewTopic("t", 11),)))
            assert set(decided_in) == {threading.main_thread()}
            decided_in.clear()
            await shell.submit(FenceBrokers(((BrokerId(2), 7),)))
            (again,) = await shell.submit(CreateTopics((NewTopic("t", 1),)))
            assert again.outcome.error is ErrorCode.TOPIC_ALREADY_EXISTS
            assert threading.main_thread() not in decided_in
            assert len(set(decided_in)) == 1, "one after the other"
            assert await stored(metadata) == shell.image

    run(scenario, tmp_path)
