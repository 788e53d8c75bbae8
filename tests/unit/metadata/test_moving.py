"""From one store to another: nothing is lost on the way, and at most one of the two is usable at any moment."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from kaspar.base.errors import KasparError
from kaspar.base.ids import BrokerId
from kaspar.controller.events import ControllerEvent, CreateTopics, DeleteTopics, NewTopic
from kaspar.controller.events import TopicReference as Named
from kaspar.controller.fence import Fence
from kaspar.controller.registration import register_broker
from kaspar.controller.shell import ControllerShell
from kaspar.metadata import nodes
from kaspar.metadata.faults import Fault, FaultyStore
from kaspar.metadata.image import ClusterImage
from kaspar.metadata.layout import broker_nodes, json_values, store_paths, topic_nodes
from kaspar.metadata.loading import StoreIncomplete, load_image, prepare_store
from kaspar.metadata.moved_mark import MovedMark, StoreMoved
from kaspar.metadata.moving import MoveRefused, move, plan_move, refuse_unmoved, undo_move
from kaspar.metadata.nodes import read_nodes
from kaspar.metadata.sqlite import FILE_NAME, FORMAT_VERSION, SqliteMetadata
from kaspar.metadata.store import (
    MAX_TRANSACTION_BYTES,
    Create,
    DamagedStore,
    Operation,
    Put,
    Store,
    StoreError,
    UnknownOutcome,
    check_size,
)
from tests.unit.controller.clusters import broker, controller
from tests.unit.metadata.stores import within

CONNECT = "zk1:2181/kaspar"


@dataclass
class Stores:
    """The embedded store, and where it is moved to."""

    source: SqliteMetadata
    target: SqliteMetadata

    async def move(self, target: Store | None = None, connect: str = CONNECT) -> None:
        await move(self.source, target or self.target.connect(), connect)

    async def undo(self, target: Store | None = None) -> None:
        await undo_move(self.source, target or self.target.connect())

    async def source_usable(self) -> bool:
        return await self.source.moved_mark() is None

    async def target_usable(self) -> bool:
        """As a broker that starts finds out, without changing anything."""
        store = self.target.connect()
        try:
            if not await store.children("/"):
                return False
            await prepare_store(store)
            await load_image(store)
        except (StoreIncomplete, DamagedStore):
            return False
        finally:
            await store.close()
        return True


COUNTED_ANEW = {store_paths.BROKER_EPOCHS, broker_nodes.incarnations_path(BrokerId(1))}


async def work_on(metadata: SqliteMetadata, *work: ControllerEvent[Any], clean_start: bool = True) -> None:
    """A broker starts, does what is said, and ends."""
    store = metadata.connect()
    await prepare_store(store)
    await register_broker(store, broker(1, clean_start=clean_start), retry_delay_s=0)
    shell = ControllerShell(store, controller(), retry_delay_s=0)
    await shell.start()
    for event in work:
        await shell.submit(event)
    await shell.stop()
    await store.close()


async def fill(metadata: SqliteMetadata) -> None:
    await work_on(
        metadata,
        CreateTopics((NewTopic("large", 1200), NewTopic("small"), NewTopic("gone"))),
        DeleteTopics((Named("gone"),)),
    )
    store = metadata.connect()
    await store.transact(
        [
            Put(store_paths.PRODUCER_IDS, json_values.encode(3000)),
            Create(
                store_paths.resource_path(store_paths.BROKER_CONFIGS, "1"),
                json_values.encode({"log.retention.ms": "5000"}),
            ),
            Create(store_paths.resource_path(store_paths.GROUP_CONFIGS, "a/b"), json_values.encode({"x": "y"})),
            Create(f"{store_paths.BROKER_DIRECTORIES}/1", b"{}"),
        ]
    )
    await store.close()


@asynccontextmanager
async def stores(folder: Path) -> AsyncIterator[Stores]:
    (folder / "target").mkdir()
    source = await SqliteMetadata.open(folder)
    target = await SqliteMetadata.open(folder / "target")
    try:
        await fill(source)
        yield Stores(source, target)
    finally:
        await source.close()
        await target.close()


def run(folder: Path, scenario: Callable[[Stores], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        async with stores(folder) as both:
            await within(30, scenario(both))

    asyncio.run(main())


@pytest.fixture
def small_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "MAX_TRANSACTION_BYTES", 1000)


class Recording(FaultyStore):
    """Remembers the transactions, and fails the one with this number."""

    def __init__(self, store: Store, failing: int = -1, fault: Fault = Fault.NONE) -> None:
        super().__init__(store)
        self.transactions: list[Sequence[Operation]] = []
        self._failing, self._fault = failing, fault

    async def transact(self, operations: Sequence[Operation]) -> None:
        self.choose = lambda: self._fault if len(self.transactions) == self._failing else Fault.NONE
        try:
            await super().transact(operations)
        finally:
            self.choose = lambda: Fault.NONE
            self.transactions.append(operations)


async def image_of(metadata: SqliteMetadata) -> ClusterImage:
    return await load_image(metadata.connect())


def in_another_store(image: ClusterImage) -> ClusterImage:
    """Its transaction numbers and versions begin again."""
    return replace(image, broker_epochs={BrokerId(1): 0}, broker_incarnations={BrokerId(1): 0})


def test_everything_is_copied_and_the_embedded_store_is_closed_to_brokers(tmp_path: Path) -> None:
    async def scenario(both: Stores) -> None:
        before = await image_of(both.source)
        assert before.deleted_topics
        assert before.broker_epochs[BrokerId(1)] > 0
        everything = await read_nodes(both.source.connect())
        await both.move()
        assert await image_of(both.target) == in_another_store(before)
        copy = await read_nodes(both.target.connect())
        assert {path for path, value in everything.items() if copy.pop(path) != value} == COUNTED_ANEW
        assert not copy
        assert await both.target.connect().get(store_paths.MOVING) is None
        assert await both.target_usable()
        await both.source.close()
        with pytest.raises(StoreMoved, match=rf"was moved to ZooKeeper: set zookeeper.connect={CONNECT} .*--undo"):
            await SqliteMetadata.open(tmp_path)
        await both.target.close()

    run(tmp_path, scenario)


def test_release_without_the_mark_refuses_a_moved_store_by_its_version(tmp_path: Path) -> None:
    def version() -> int:
        file = sqlite3.connect(tmp_path / FILE_NAME)
        (found,) = file.execute("PRAGMA user_version").fetchone()
        file.close()
        return int(found)

    async def scenario(both: Stores) -> None:
        await both.move()
        await both.source.close()
        assert version() > FORMAT_VERSION
        both.source = await SqliteMetadata.open(tmp_path, even_if_moved=True)
        await both.undo()
        await both.source.close()
        assert version() == FORMAT_VERSION

    run(tmp_path, scenario)


def test_moved_store_of_a_newer_format_is_refused(tmp_path: Path) -> None:
    async def main() -> None:
        metadata = await SqliteMetadata.open(tmp_path)
        await metadata.run(lambda: metadata._connection.execute(f"PRAGMA user_version = {FORMAT_VERSION + 1}"))
        await metadata.mark_moved(MovedMark(CONNECT, 0))
        await metadata.close()
        with pytest.raises(KasparError, match="use the newer release that wrote it"):
            await SqliteMetadata.open(tmp_path, even_if_moved=True)

    asyncio.run(main())


def test_the_work_goes_on_in_the_new_store(tmp_path: Path) -> None:
    async def scenario(both: Stores) -> None:
        before = await image_of(both.source)
        await both.move()
        await work_on(both.target, CreateTopics((NewTopic("new"),)))
        after = await image_of(both.target)
        assert after.controller_epoch == before.controller_epoch + 1
        assert after.topics.keys() == {"large", "small", "new"}
        assert {name: after.topics[name] for name in before.topics} == before.topics

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    ("clean_start", "missed"), [(True, []), (False, []), (True, [True, True]), (True, [True, False, True])]
)
def test_crash_is_noticed_across_the_move(tmp_path: Path, clean_start: bool, missed: list[bool]) -> None:
    """By a new leader epoch, also if no controller has seen the start that followed it. `missed`: which were clean."""

    async def scenario(both: Stores) -> None:
        for _ in range(3):
            await work_on(both.source)
        for was_clean in missed:
            store = both.source.connect()
            await register_broker(store, broker(1, clean_start=was_clean), retry_delay_s=0)
            await store.close()
        before = (await image_of(both.source)).topics["small"].partitions[0].leader_epoch
        await both.move()
        await work_on(both.target, clean_start=clean_start)
        after = (await image_of(both.target)).topics["small"].partitions[0].leader_epoch
        assert (after > before) == (not all([clean_start, *missed]))
        await work_on(both.target)
        assert (await image_of(both.target)).topics["small"].partitions[0].leader_epoch == after

    run(tmp_path, scenario)


def test_transactions_stay_within_the_limit(tmp_path: Path) -> None:
    values = {f"/topics/{number:02}": bytes(MAX_TRANSACTION_BYTES // 7) for number in range(40)}
    values["/topics/full"] = bytes(MAX_TRANSACTION_BYTES - 300)
    changes = nodes.changes_between(values, {})
    guard = Create(store_paths.MOVING, b"x" * 22)
    transactions = list(nodes.in_transactions(changes, guard))
    for transaction in transactions:
        check_size([guard, *transaction])
    assert [operation for transaction in transactions for operation in transaction] == changes
    assert len(transactions) == 8


def faults() -> Iterator[tuple[int, Fault]]:
    for number in range(50):
        yield number, Fault.NOT_SENT
        yield number, Fault.SESSION_LOST_AFTER


@pytest.mark.usefixtures("small_transactions")
def test_interrupted_move_continues_and_never_leaves_two_usable_stores(tmp_path: Path) -> None:
    """At every transaction, before and after it took effect."""

    async def scenario(both: Stores) -> None:
        wanted = in_another_store(await image_of(both.source))
        interruptions = 0
        for number, fault in faults():
            target = Recording(both.target.connect(), number, fault)
            try:
                await both.move(target)
            except StoreError:
                interruptions += 1
                is_finished = number == len(target.transactions) - 1 and await both.target_usable()
                assert await both.source_usable() + await both.target_usable() <= 1
                if not is_finished:
                    assert await both.target.connect().get(store_paths.MOVING) is not None or number == 0
                await both.move()
            assert not await both.source_usable()
            assert await both.target_usable()
            assert await image_of(both.target) == wanted
            if number >= len(target.transactions):
                break
            await both.undo()
        assert interruptions >= 8

    run(tmp_path, scenario)


@pytest.mark.usefixtures("small_transactions")
def test_interrupted_undo_continues_and_never_leaves_two_usable_stores(tmp_path: Path) -> None:
    async def scenario(both: Stores) -> None:
        interruptions = 0
        for number, fault in faults():
            await both.move()
            target = Recording(both.target.connect(), number, fault)
            try:
                await both.undo(target)
            except StoreError:
                interruptions += 1
                assert await both.source_usable() + await both.target_usable() <= 1
                if not await both.source_usable():
                    await both.undo()
                else:  # only the last node is left, with which another move of this store begins
                    assert await read_nodes(both.target.connect()) == {}
            assert await both.source_usable()
            assert not await both.target_usable()
            if number >= len(target.transactions):
                break
        assert await both.target.connect().children("/") == []
        assert interruptions >= 8

    run(tmp_path, scenario)


@pytest.mark.usefixtures("small_transactions")
def test_what_the_broker_does_between_two_attempts_is_moved_too(tmp_path: Path) -> None:
    async def scenario(both: Stores) -> None:
        with pytest.raises(UnknownOutcome):
            await both.move(Recording(both.target.connect(), 5, Fault.NOT_SENT))
        await work_on(both.source, DeleteTopics((Named("large"),)), CreateTopics((NewTopic("later", 3),)))
        wanted = in_another_store(await image_of(both.source))
        await both.move()
        assert await image_of(both.target) == wanted
        assert wanted.topics.keys() == {"small", "later"}

    run(tmp_path, scenario)


def test_another_cluster_is_refused_and_both_are_named(tmp_path: Path) -> None:
    async def scenario(both: Stores) -> None:
        await prepare_store(both.target.connect(), "otherClusterOtherClust")
        mine = (await image_of(both.source)).cluster_id
        with pytest.raises(MoveRefused, match=f"has the cluster otherClusterOtherClust, .* of the cluster {mine}"):
            await both.move()
        assert await both.source_usable()

    run(tmp_path, scenario)


def test_begun_move_of_another_cluster_is_refused(tmp_path: Path) -> None:
    async def scenario(both: Stores) -> None:
        await both.target.connect().transact([Create(store_paths.MOVING, b"otherClusterOtherClust")])
        with pytest.raises(MoveRefused, match="has the cluster otherClusterOtherClust"):
            await both.move()

    run(tmp_path, scenario)


def test_path_with_something_else_is_refused(tmp_path: Path) -> None:
    async def scenario(both: Stores) -> None:
        await both.target.connect().transact([Create("/zookeeper"), Create("/config"), Create("/isr_change")])
        with pytest.raises(MoveRefused, match=r"something else \(config, isr_change\): .* such as zk1:2181/kaspar"):
            await both.move()

    run(tmp_path, scenario)


def test_node_of_zookeeper_itself_is_not_touched(tmp_path: Path) -> None:
    async def scenario(both: Stores) -> None:
        store = both.target.connect()
        await store.transact([Create("/zookeeper"), Create("/zookeeper/quota")])
        await both.move()
        await both.undo()
        assert await store.children("/") == ["zookeeper"]
        assert await store.children("/zookeeper") == ["quota"]

    run(tmp_path, scenario)


def test_same_cluster_is_not_overwritten(tmp_path: Path) -> None:
    """An embedded store that came back from a backup has no mark."""

    async def scenario(both: Stores) -> None:
        await both.move()
        await both.source.unmark_moved()
        with pytest.raises(MoveRefused, match=r"already has the cluster .* and not by a move from this store"):
            await both.move()

    run(tmp_path, scenario)


def test_second_move_changes_nothing(tmp_path: Path) -> None:
    async def scenario(both: Stores) -> None:
        await both.move()
        await work_on(both.target, CreateTopics((NewTopic("new"),)))
        target = Recording(both.target.connect())
        assert (await move(both.source, target, CONNECT)).is_done
        assert not target.transactions
        with pytest.raises(MoveRefused, match="was moved to zk1:2181/kaspar before, not to zk2:2181"):
            await both.move(connect="zk2:2181")

    run(tmp_path, scenario)


def test_copy_that_was_lost_is_not_made_again(tmp_path: Path) -> None:
    """Brokers may have changed it before it was lost."""

    async def scenario(both: Stores) -> None:
        await both.source.mark_moved(MovedMark(CONNECT, 0))
        with pytest.raises(MoveRefused, match="ZooKeeper has lost it"):
            await both.move()
        with pytest.raises(MoveRefused, match="nothing shows whether the copy was used"):
            await both.undo()

    run(tmp_path, scenario)


def test_store_without_a_cluster_has_nothing_to_move(tmp_path: Path) -> None:
    async def main() -> None:
        (tmp_path / "target").mkdir()
        source, target = await SqliteMetadata.open(tmp_path), await SqliteMetadata.open(tmp_path / "target")
        with pytest.raises(MoveRefused, match="has no cluster yet"):
            await move(source, target.connect(), CONNECT)
        await source.close()
        await target.close()

    asyncio.run(main())


def test_plan_changes_nothing(tmp_path: Path) -> None:
    async def scenario(both: Stores) -> None:
        target = Recording(both.target.connect())
        plan = await plan_move(both.source, target, CONNECT)
        assert len(plan.changes) == len(plan.nodes) > 20
        assert not plan.is_done
        assert not target.transactions
        assert await both.source_usable()

    run(tmp_path, scenario)


def test_copy_that_reads_differently_leaves_the_embedded_store_as_it_is(tmp_path: Path) -> None:
    class Forgetful(FaultyStore):
        async def transact(self, operations: Sequence[Operation]) -> None:
            kept = [each for each in operations if each.path != topic_nodes.topic_path("small")]
            await super().transact(kept)

    async def scenario(both: Stores) -> None:
        with pytest.raises(KasparError, match=r"reads differently \(/topics/small\)"):
            await both.move(Forgetful(both.target.connect()))
        assert await both.source_usable()
        assert not await both.target_usable()

    run(tmp_path, scenario)


def test_others_that_write_during_the_move_end_it(tmp_path: Path) -> None:
    class Interfering(FaultyStore):
        async def transact(self, operations: Sequence[Operation]) -> None:
            other = both_stores[0].target.connect()
            await other.transact([Create("/topics")])
            await super().transact(operations)

    both_stores: list[Stores] = []

    async def scenario(both: Stores) -> None:
        both_stores.append(both)
        with pytest.raises(KasparError, match="was changed by others during the move: /topics is already there"):
            await both.move(Interfering(both.target.connect()))
        assert await both.source_usable()

    run(tmp_path, scenario)


# -- undo --------------------------------------------------------------------------------------------------------------


def test_undo_is_refused_once_a_controller_has_claimed_the_copy(tmp_path: Path) -> None:
    async def scenario(both: Stores) -> None:
        await both.move()
        store = both.target.connect()
        await Fence(store, BrokerId(1), retry_delay_s=0).claim()
        await store.close()
        before = await read_nodes(both.target.connect())
        with pytest.raises(MoveRefused, match="a controller has used the metadata at zk1:2181/kaspar since"):
            await both.undo()
        assert not await both.source_usable()
        assert await read_nodes(both.target.connect()) == before

    run(tmp_path, scenario)


def test_undo_is_refused_while_a_broker_is_registered(tmp_path: Path) -> None:
    async def scenario(both: Stores) -> None:
        await both.move()
        await register_broker(both.target.connect(), broker(7), retry_delay_s=0)
        with pytest.raises(MoveRefused, match="while brokers are registered at zk1:2181/kaspar: 7"):
            await both.undo()

    run(tmp_path, scenario)


def test_broker_that_is_starting_cannot_go_on_after_undo(tmp_path: Path) -> None:
    async def scenario(both: Stores) -> None:
        await both.move()
        starting = both.target.connect()
        await prepare_store(starting)
        await load_image(starting)
        await both.undo()
        with pytest.raises(AssertionError, match="the fence"):
            await Fence(starting, BrokerId(1), retry_delay_s=0).claim()

    run(tmp_path, scenario)


def test_undo_of_what_was_not_moved_is_refused(tmp_path: Path) -> None:
    async def scenario(both: Stores) -> None:
        with pytest.raises(MoveRefused, match="has not been moved"):
            await both.undo()

    run(tmp_path, scenario)


# -- a broker that starts on ZooKeeper ---------------------------------------------------------------------------------


def refusal(folder: Path, prepare: Callable[[Stores], Coroutine[Any, Any, None]], *, knows_id: bool = False) -> str:
    """What a broker says that starts on the target, with the embedded store among its folders; "" if it starts."""
    said = []

    async def scenario(both: Stores) -> None:
        await prepare(both)
        cluster_id = (await image_of(both.source)).cluster_id if knows_id else None
        await both.source.close()
        try:
            folders = [str(folder / "empty"), str(folder)]
            await refuse_unmoved(both.target.connect(), folders, cluster_id=cluster_id, connect="zk1:2181")
        except MoveRefused as problem:
            said.append(str(problem))

    run(folder, scenario)
    return "".join(said)


async def nothing(_: Stores) -> None:
    pass


async def moved(both: Stores) -> None:
    await both.move()


async def other_cluster(both: Stores) -> None:
    await prepare_store(both.target.connect(), "otherClusterOtherClust")


async def moved_elsewhere(both: Stores) -> None:
    await both.source.mark_moved(MovedMark(CONNECT, 0))


@pytest.mark.parametrize("knows_id", [False, True])
@pytest.mark.parametrize(
    ("prepare", "sentence"),
    [
        (nothing, "ZooKeeper there has no cluster. Move it with 'kaspar metadata move FILE --zookeeper zk1:2181'"),
        (other_cluster, "ZooKeeper there has the cluster otherClusterOtherClust. Move it with"),
        (moved_elsewhere, "was moved to zk1:2181/kaspar, and zookeeper.connect is zk1:2181: ZooKeeper there has no"),
        (moved, ""),
    ],
)
def test_broker_refuses_to_leave_its_topics_behind(
    tmp_path: Path, prepare: Callable[[Stores], Coroutine[Any, Any, None]], sentence: str, knows_id: bool
) -> None:
    said = refusal(tmp_path, prepare, knows_id=knows_id)
    assert sentence in said
    assert bool(said) == bool(sentence)


def test_embedded_store_without_topics_is_no_obstacle(tmp_path: Path) -> None:
    async def empty(both: Stores) -> None:
        await both.source.close()
        (tmp_path / FILE_NAME).unlink()
        both.source = await SqliteMetadata.open(tmp_path)
        await prepare_store(both.source.connect())

    assert refusal(tmp_path, empty) == ""


def test_no_broker_starts_on_a_copy_that_is_not_complete(tmp_path: Path) -> None:
    async def scenario(both: Stores) -> None:
        target = Recording(both.target.connect(), 1, Fault.NOT_SENT)
        with pytest.raises(UnknownOutcome):
            await both.move(target)
        cluster_id = (await image_of(both.source)).cluster_id
        with pytest.raises(StoreIncomplete, match=f"the cluster {cluster_id} is being moved here"):
            await prepare_store(both.target.connect())

    run(tmp_path, scenario)
