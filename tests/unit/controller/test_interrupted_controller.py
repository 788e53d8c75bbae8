"""A store that is away interrupts the controller: it refuses changes, claims the store again in a new epoch, and goes
on from what is stored then. Only another controller ends it.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.controller import shell as shell_module
from kaspar.controller.events import (
    DONE,
    AllocateProducerIds,
    ControllerEvent,
    CreateTopics,
    DeleteTopics,
    NewTopic,
    TopicReference,
)
from kaspar.controller.registration import register_broker
from kaspar.controller.shell import ControllerShell
from kaspar.metadata.faults import Fault, FaultyStore
from kaspar.metadata.images import ImageUpdate
from kaspar.metadata.loading import prepare_store
from kaspar.metadata.sqlite import SqliteMetadata
from kaspar.metadata.store import Operation, Store, UnknownOutcome, VersionConflict
from tests.unit.controller.clusters import broker, controller, vacated
from tests.unit.controller.test_shell import ONE, run, running, scripted, stored
from tests.unit.metadata.stores import until


async def until_back(shell: ControllerShell) -> None:
    await until(lambda: shell.interrupted is None)


async def refused_as_away(shell: ControllerShell, event: ControllerEvent[Any]) -> None:
    with pytest.raises(Refused) as refused:
        await shell.submit(event)
    assert refused.value.code == ErrorCode.NOT_CONTROLLER


@pytest.mark.parametrize("fault", [Fault.NOT_SENT, Fault.NO_RESPONSE])
def test_a_store_that_was_away_is_claimed_again_in_a_new_epoch(tmp_path: Path, fault: Fault) -> None:
    async def scenario(metadata: SqliteMetadata) -> None:
        store = FaultyStore(metadata.connect())
        published: list[ImageUpdate] = []
        async with running(store) as shell:
            await shell.submit(CreateTopics((NewTopic("before"),)))
            shell.add_follower(published.append)
            published.clear()
            epoch, kept = shell.image.controller_epoch, shell.image.topics["before"]
            store.choose = lambda: fault
            await refused_as_away(shell, CreateTopics((NewTopic("t"),)))
            assert shell.interrupted is not None
            assert "does not respond" in shell.interrupted
            await refused_as_away(shell, CreateTopics((NewTopic("other"),)))
            assert not published, "nothing is shown that may not be stored"
            store.choose = scripted()
            await until_back(shell)
            (created,) = await shell.submit(CreateTopics((NewTopic("after"),)))
            assert created.outcome == DONE
            assert shell.image.controller_epoch > epoch
            assert ("t" in shell.image.topics) == (fault is Fault.NO_RESPONSE)
            assert shell.image.topics["before"] is kept
            assert published[0].changed_topics == ({"t"} if fault is Fault.NO_RESPONSE else set())
            assert published[0].version.controller_epoch == shell.image.controller_epoch
            assert published[-1].image is shell.image
            assert await stored(metadata) == shell.image

    run(scenario, tmp_path)


def test_events_that_wait_for_their_turn_are_refused_when_the_store_is_away(tmp_path: Path) -> None:
    async def scenario(metadata: SqliteMetadata) -> None:
        store = FaultyStore(metadata.connect())
        async with running(store) as shell:
            store.choose = lambda: Fault.NOT_SENT
            waiting = [asyncio.create_task(shell.submit(AllocateProducerIds(ONE))) for _ in range(1500)]
            results = await asyncio.gather(*waiting, return_exceptions=True)
            assert {getattr(result, "code", None) for result in results} == {ErrorCode.NOT_CONTROLLER}
            store.choose = scripted()
            await until_back(shell)
            assert (await shell.submit(AllocateProducerIds(ONE))).first == 0

    run(scenario, tmp_path)


def test_a_change_of_the_earlier_epoch_that_comes_late_is_refused(tmp_path: Path) -> None:
    class Slow(FaultyStore):
        """Delays a transaction, as a network may, with no response meanwhile."""

        late: Sequence[Operation] | None = None
        slow = False

        async def transact(self, operations: Sequence[Operation]) -> None:
            if self.slow:
                self.late, self.slow = operations, False
                self.choose = lambda: Fault.NOT_SENT
                raise UnknownOutcome("no response yet")
            await super().transact(operations)

    async def scenario(metadata: SqliteMetadata) -> None:
        inner = metadata.connect()
        store = Slow(inner)
        async with running(store) as shell:
            store.slow = True
            await refused_as_away(shell, CreateTopics((NewTopic("late"),)))
            store.choose = scripted()
            await until_back(shell)
            assert store.late is not None
            with pytest.raises(VersionConflict):
                await inner.transact(store.late)
            assert "late" not in shell.image.topics
            assert await stored(metadata) == shell.image

    run(scenario, tmp_path)


@pytest.mark.parametrize("fault", [Fault.SESSION_LOST, Fault.SESSION_LOST_AFTER])
def test_a_lost_session_is_replaced_and_the_broker_registered_in_it(tmp_path: Path, fault: Fault) -> None:
    async def scenario(metadata: SqliteMetadata) -> None:
        first = FaultyStore(metadata.connect())
        await prepare_store(first)
        registered = await register_broker(first, broker(1, clean_start=True), retry_delay_s=0)
        attempts = 0

        async def reconnect() -> Store:
            nonlocal attempts
            attempts += 1
            if attempts == 1:
                raise Refused(ErrorCode.DUPLICATE_BROKER_REGISTRATION, "the old session is not given up yet")
            second = metadata.connect()
            await register_broker(second, broker(1, clean_start=True), retry_delay_s=0)
            return second

        shell = ControllerShell(first, controller(), retry_delay_s=0, reconnect=reconnect)
        await shell.start()
        first.choose = scripted(fault)
        await refused_as_away(shell, CreateTopics((NewTopic("t"),)))
        await until_back(shell)
        await shell.look_at_brokers()
        assert shell.image.brokers[ONE].epoch > registered.epoch
        assert ("t" in shell.image.topics) == (fault is Fault.SESSION_LOST_AFTER)
        third = metadata.connect()
        await register_broker(third, broker(3), retry_delay_s=0)
        await until(lambda: set(shell.image.brokers) == {1, 3})  # the watch is set in the new session
        assert await stored(metadata) == shell.image
        await shell.stop()

    run(scenario, tmp_path)


def test_a_controller_that_comes_back_does_not_claim_what_another_has(tmp_path: Path) -> None:
    async def scenario(metadata: SqliteMetadata) -> None:
        store = FaultyStore(metadata.connect())
        async with running(store) as old:
            store.choose = lambda: Fault.NOT_SENT
            await refused_as_away(old, CreateTopics((NewTopic("t"),)))
            new = ControllerShell(await vacated(metadata.connect()), controller(seed=1), retry_delay_s=0)
            await new.start()
            store.choose = scripted()
            await old.ended.wait()
            await refused_as_away(old, CreateTopics((NewTopic("t"),)))
            (created,) = await new.submit(CreateTopics((NewTopic("new"),)))
            assert created.outcome == DONE
            await new.stop()

    run(scenario, tmp_path)


def test_a_controller_that_is_interrupted_can_be_stopped(tmp_path: Path) -> None:
    async def scenario(metadata: SqliteMetadata) -> None:
        store = FaultyStore(metadata.connect())
        async with running(store) as shell:
            store.choose = lambda: Fault.NOT_SENT
            await refused_as_away(shell, CreateTopics((NewTopic("t"),)))
        assert shell.ended.is_set()

    run(scenario, tmp_path)


def test_deleting_and_brokers_that_come_meanwhile_are_seen_afterwards(tmp_path: Path) -> None:
    async def scenario(metadata: SqliteMetadata) -> None:
        store = FaultyStore(metadata.connect(), prompt_watches=True)
        async with running(store) as shell:
            published: list[ImageUpdate] = []
            await shell.submit(CreateTopics((NewTopic("t"),)))
            shell.add_follower(published.append)
            published.clear()
            store.choose = lambda: Fault.NO_RESPONSE
            await refused_as_away(shell, DeleteTopics((TopicReference("t"),)))
            await register_broker(metadata.connect(), broker(2), retry_delay_s=0)
            store.choose = scripted()
            await until_back(shell)
            await shell.submit(AllocateProducerIds(ONE))
            assert set(shell.image.brokers) == {1, 2}
            assert shell.image.topics == {}
            assert [deleted.name for deleted in shell.image.deleted_topics.values()] == ["t"]
            assert [deleted.name for deleted in published[0].deleted_topics] == ["t"]
            assert await stored(metadata) == shell.image

    run(scenario, tmp_path)


def test_where_nothing_is_changed_it_is_noticed_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(metadata: SqliteMetadata) -> None:
        monkeypatch.setattr(shell_module, "LOOK_AT_FENCE_S", 0.001)
        store = FaultyStore(metadata.connect())
        async with running(store) as shell:
            store.choose = lambda: Fault.NOT_SENT
            await until(lambda: shell.interrupted is not None)
            store.choose = scripted()
            await until_back(shell)
            new = ControllerShell(await vacated(metadata.connect()), controller(seed=1), retry_delay_s=0)
            await new.start()
            await shell.ended.wait()
            await new.stop()

    run(scenario, tmp_path)
