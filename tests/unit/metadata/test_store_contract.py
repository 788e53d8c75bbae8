"""What every store must keep. ZooKeeper runs the same tests (tests/integration/metadata)."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from kaspar.metadata.store import (
    MAX_TRANSACTION_BYTES,
    Check,
    Create,
    Delete,
    Put,
    SessionLost,
    Store,
    TooLarge,
    VersionConflict,
)
from tests.unit.metadata.stores import STORES, Ensemble, OpenEnsemble, within

Scenario = Callable[[Ensemble], Awaitable[None]]


@pytest.fixture(params=STORES)
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Scenario], None]:
    """Runs a scenario on a new store."""
    open_ensemble: OpenEnsemble = STORES[request.param]

    async def main(scenario: Scenario) -> None:
        async with open_ensemble(tmp_path) as ensemble:
            await within(10, scenario(ensemble))

    return lambda scenario: asyncio.run(main(scenario))


Run = Callable[[Scenario], None]


class Calls:
    """A watcher that remembers its calls."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.came = asyncio.Event()

    def __call__(self, path: str) -> None:
        self.paths.append(path)
        self.came.set()


async def value(store: Store, path: str) -> bytes | None:
    node = await store.get(path)
    return None if node is None else node.value


def test_versions_count_the_puts(run: Run) -> None:
    async def scenario(ensemble: Ensemble) -> None:
        store = ensemble.connect()
        assert await store.get("/a") is None
        await store.transact([Create("/a", b"0")])
        for version in range(3):
            node = await store.get("/a")
            assert node is not None
            assert (node.version, node.value, node.is_mine) == (version, str(version).encode(), False)
            await store.transact([Put("/a", str(version + 1).encode(), version)])
        await store.transact([Put("/a", b"any version")])
        assert await value(store, "/a") == b"any version"

    run(scenario)


def test_a_recreated_node_is_recognised_by_its_creation_id(run: Run) -> None:
    async def scenario(ensemble: Ensemble) -> None:
        store = ensemble.connect()
        await store.transact([Create("/a")])
        first = await store.get("/a")
        await store.transact([Delete("/a")])
        await store.transact([Create("/a")])
        second = await store.get("/a")
        assert first is not None
        assert second is not None
        assert second.version == first.version == 0
        assert second.created > first.created

    run(scenario)


@pytest.mark.parametrize(
    "refused",
    [
        Create("/a"),
        Create("/missing/child"),
        Create("/mine/child"),
        Put("/a", b"x", 5),
        Put("/missing", b"x"),
        Delete("/a", 5),
        Delete("/missing"),
        Delete("/parent"),
        Check("/a", 5),
        Check("/missing", 0),
    ],
    ids=repr,
)
def test_a_refused_operation_leaves_nothing_of_its_transaction(
    run: Run, refused: Create | Put | Delete | Check
) -> None:
    async def scenario(ensemble: Ensemble) -> None:
        store = ensemble.connect()
        await store.transact([Create("/a", b"1"), Create("/parent"), Create("/parent/child")])
        await store.transact([Create("/mine", ephemeral=True)])
        with pytest.raises(VersionConflict):
            await store.transact(
                [Create("/b"), Put("/a", b"2"), Delete("/parent/child"), Create("/parent/c2"), refused]
            )
        assert await value(store, "/a") == b"1"
        assert await store.get("/b") is None
        assert await store.children("/parent") == ["child"]

    run(scenario)


def test_a_transaction_sees_its_own_operations(run: Run) -> None:
    async def scenario(ensemble: Ensemble) -> None:
        store = ensemble.connect()
        await store.transact(
            [Create("/a"), Create("/a/b"), Put("/a", b"1", 0), Put("/a", b"2", 1), Check("/a", 2), Delete("/a/b")]
        )
        assert await value(store, "/a") == b"2"
        assert await store.children("/a") == []

    run(scenario)


def test_children_are_sorted_names_one_level_down(run: Run) -> None:
    async def scenario(ensemble: Ensemble) -> None:
        store = ensemble.connect()
        await store.transact([Create("/a"), Create("/a/z"), Create("/a/b"), Create("/a/b/c"), Create("/ab")])
        assert await store.children("/a") == ["b", "z"]
        assert await store.children("/") == ["a", "ab"]
        assert await store.children("/missing") == []

    run(scenario)


def test_get_many_keeps_the_order_and_the_gaps(run: Run) -> None:
    async def scenario(ensemble: Ensemble) -> None:
        store = ensemble.connect()
        await store.transact([Create("/a", b"A"), Create("/b", b"B")])
        nodes = await store.get_many(["/b", "/missing", "/a", "/b"])
        assert [node and node.value for node in nodes] == [b"B", None, b"A", b"B"]

    run(scenario)


def test_a_value_or_transaction_that_is_too_large_is_refused(run: Run) -> None:
    async def scenario(ensemble: Ensemble) -> None:
        store = ensemble.connect()
        with pytest.raises(TooLarge):
            await store.transact([Create("/a", bytes(MAX_TRANSACTION_BYTES))])
        half = bytes(MAX_TRANSACTION_BYTES // 2)
        with pytest.raises(TooLarge):
            await store.transact([Create("/a", half), Create("/b", half)])
        assert await store.children("/") == []
        await store.transact([Create("/a", bytes(MAX_TRANSACTION_BYTES - 100))])
        assert len(await value(store, "/a") or b"") == MAX_TRANSACTION_BYTES - 100

    run(scenario)


def test_ephemeral_nodes_go_with_their_session(run: Run) -> None:
    async def scenario(ensemble: Ensemble) -> None:
        one, other = ensemble.connect(), ensemble.connect()
        await one.transact([Create("/dir"), Create("/dir/mine", b"1", ephemeral=True), Create("/dir/lasting")])
        own, seen = await one.get("/dir/mine"), await other.get("/dir/mine")
        assert own is not None
        assert own.is_mine
        assert seen is not None
        assert not seen.is_mine
        await one.close()
        assert await other.children("/dir") == ["lasting"]

    run(scenario)


def test_a_session_that_is_over_refuses_every_call(run: Run) -> None:
    async def scenario(ensemble: Ensemble) -> None:
        store = ensemble.connect()
        lost = [store.is_lost]
        await store.close()
        await store.close()
        lost.append(store.is_lost)
        assert lost == [False, True]
        for call in (store.get("/"), store.children("/"), store.get_many(["/"]), store.transact([Create("/a")])):
            with pytest.raises(SessionLost):
                await call

    run(scenario)


def test_a_node_watch_fires_once_for_create_change_and_delete(run: Run) -> None:
    async def scenario(ensemble: Ensemble) -> None:
        reader, writer = ensemble.connect(), ensemble.connect()
        for change in (Create("/a"), Put("/a", b"1"), Delete("/a")):
            calls = Calls()
            await reader.get("/a", calls)
            await writer.transact([change])
            await calls.came.wait()
            await writer.transact([Create("/noise"), Delete("/noise")])
            assert calls.paths == ["/a"]
        await writer.transact([Create("/a")])
        await reader.get("/a")
        assert calls.paths == ["/a"], "a watch fires at most once"

    run(scenario)


def test_a_children_watch_fires_when_one_comes_or_goes_and_not_when_it_changes(run: Run) -> None:
    async def scenario(ensemble: Ensemble) -> None:
        reader, writer = ensemble.connect(), ensemble.connect()
        await writer.transact([Create("/a")])
        calls = Calls()
        assert await reader.children("/a", calls) == []
        await writer.transact([Put("/a", b"1")])
        await writer.transact([Create("/a/b")])
        await calls.came.wait()
        await writer.transact([Create("/a/c"), Delete("/a/c")])
        assert await reader.children("/a") == ["b"]
        assert calls.paths == ["/a"], "a watch fires at most once"
        calls = Calls()
        assert await reader.children("/a", calls) == ["b"]
        await writer.transact([Put("/a/b", b"1")])
        await writer.transact([Create("/a/b/c")])
        await reader.children("/a")
        assert calls.paths == []
        await writer.transact([Delete("/a/b/c"), Delete("/a/b")])
        await calls.came.wait()
        assert calls.paths == ["/a"]

    run(scenario)


def test_a_watch_fires_when_a_session_ends(run: Run) -> None:
    async def scenario(ensemble: Ensemble) -> None:
        watching, going = ensemble.connect(), ensemble.connect()
        await going.transact([Create("/up"), Create("/up/1", ephemeral=True)])
        calls = Calls()
        assert await watching.children("/up", calls) == ["1"]
        await going.close()
        await calls.came.wait()
        assert await watching.children("/up") == []

    run(scenario)


def test_a_watch_comes_before_a_read_that_shows_the_change(run: Run) -> None:
    async def scenario(ensemble: Ensemble) -> None:
        reader, writer = ensemble.connect(), ensemble.connect()
        await writer.transact([Create("/a", b"old")])
        for _ in range(50):
            calls = Calls()
            before = await value(reader, "/a")
            await reader.get("/a", calls)
            writing = asyncio.create_task(writer.transact([Put("/a", (before or b"")[:3] + b"+")]))
            while await value(reader, "/a") == before and not writing.done():
                assert calls.paths in ([], ["/a"])
            await writing
            if await value(reader, "/a") != before:
                assert calls.paths == ["/a"]
            await writer.transact([Put("/a", b"old")])

    run(scenario)


def test_a_refused_transaction_fires_no_watch(run: Run) -> None:
    async def scenario(ensemble: Ensemble) -> None:
        store = ensemble.connect()
        calls = Calls()
        await store.get("/a", calls)
        with pytest.raises(VersionConflict):
            await store.transact([Create("/a"), Check("/missing", 0)])
        await store.get("/a")
        assert calls.paths == []

    run(scenario)


def test_concurrent_puts_of_one_version_have_one_winner(run: Run) -> None:
    async def scenario(ensemble: Ensemble) -> None:
        stores = [ensemble.connect() for _ in range(5)]
        await stores[0].transact([Create("/a")])
        puts = [store.transact([Put("/a", str(number).encode(), 0)]) for number, store in enumerate(stores)]
        results = await asyncio.gather(*puts, return_exceptions=True)
        assert sum(result is None for result in results) == 1
        assert sum(isinstance(result, VersionConflict) for result in results) == 4

    run(scenario)
