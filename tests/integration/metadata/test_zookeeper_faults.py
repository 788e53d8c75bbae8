"""ZooKeeper's hard parts: connections cut in mid-call, silent ones, expired sessions, lost quorums, killed servers.

A proxy between client and server cuts, refuses and swallows.
"""

import asyncio
import contextlib
import importlib.util
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.handlers.utils import AsyncResult

from kaspar.base.errors import InvalidSetting, KasparError
from kaspar.metadata.layout import store_paths
from kaspar.metadata.loading import load_image, prepare_store
from kaspar.metadata.store import Create, Delete, Put, SessionLost, Store, UnknownOutcome, VersionConflict
from kaspar.metadata.zookeeper import ZooKeeperMetadata, ZooKeeperStore, session
from kaspar.metadata.zookeeper.address import parse_address
from kaspar.metadata.zookeeper.session import Session
from kaspar.security.zookeeper import Login, ZooKeeperSecurity
from kaspar.zookeeper import ZooKeeperServer
from tests.peers.downloads import ToolMissingError
from tests.peers.missing import unless_missing
from tests.peers.wire import free_port
from tests.peers.zookeeper import Proxy, address_of, ensemble, serving, zookeeper
from tests.unit.metadata.stores import until, within
from tests.unit.metadata.test_store_contract import Calls, value

SECONDS = 60.0
SHORT_MS = 1_500  # a session timeout that a test waits for


@pytest.fixture
def proxy(server: ZooKeeperServer) -> Iterator[Proxy]:
    with Proxy(server) as proxy:
        yield proxy


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(within(SECONDS, main()))


@contextlib.asynccontextmanager
async def opened(address: str, session_timeout_ms: int = 20_000) -> AsyncIterator[ZooKeeperMetadata]:
    metadata = await ZooKeeperMetadata.open(address, session_timeout_ms=session_timeout_ms)
    try:
        yield metadata
    finally:
        await metadata.close()


async def happened(event: threading.Event) -> None:
    await until(event.is_set)


# -- connections -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_carried_out", [True, False], ids=["response lost", "request lost"])
def test_cut_in_mid_transaction_is_an_unknown_outcome_and_the_session_goes_on(
    proxy: Proxy, chroot: str, is_carried_out: bool
) -> None:
    async def main() -> None:
        async with opened(proxy.address + chroot) as metadata:
            store = metadata.connect()
            await store.transact([Create("/mine", ephemeral=True)])
            before = store.session.id
            proxy.drop(responses=is_carried_out, requests=not is_carried_out)
            transaction = asyncio.create_task(store.transact([Create("/new", b"1")]))
            await happened(proxy.responses_dropped if is_carried_out else proxy.requests_dropped)
            proxy.drop()
            proxy.cut()
            started = time.monotonic()
            with pytest.raises(UnknownOutcome):
                await transaction
            assert time.monotonic() - started < 5

            assert await value(store, "/new") == (b"1" if is_carried_out else None)
            mine = await store.get("/mine")
            assert mine is not None
            assert mine.is_mine
            assert store.session.id == before
            assert not store.is_lost

    run(main)


def test_unknown_outcome_is_settled_before_the_next_read(
    proxy: Proxy, chroot: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with opened(proxy.address + chroot) as metadata:
            store = metadata.connect()
            await store.transact([Create("/a")])
            synced: list[str] = []
            sync = KazooClient.sync_async

            def counted(client: KazooClient, path: str) -> AsyncResult:
                synced.append(path)
                return sync(client, path)

            monkeypatch.setattr(KazooClient, "sync_async", counted)
            await store.get("/a")
            assert synced == []
            proxy.drop(responses=True)
            giving_up = asyncio.create_task(store.transact([Put("/a", b"1")]))
            await happened(proxy.responses_dropped)
            giving_up.cancel()
            await asyncio.gather(giving_up, return_exceptions=True)
            proxy.drop()
            proxy.cut()
            assert await _read_again(store, "/a") == b"1"
            assert synced
            synced.clear()
            assert await value(store, "/a") == b"1"
            assert synced == []

    run(main)


def test_call_without_a_connection_waits_for_the_next(proxy: Proxy, chroot: str) -> None:
    async def main() -> None:
        async with opened(proxy.address + chroot) as metadata:
            store = metadata.connect()
            await store.transact([Create("/a", b"1")])
            proxy.refuse()
            proxy.cut()
            await until(lambda: not store.is_connected)
            reading = asyncio.create_task(value(store, "/a"))
            writing = asyncio.create_task(store.transact([Create("/b")]))
            assert not store.is_lost
            proxy.refuse(False)
            assert await reading == b"1"
            await writing

    run(main)


@pytest.mark.parametrize("is_silent", [True, False], ids=["silent", "refused"])
def test_call_ends_within_seconds_whatever_the_connection_does(
    proxy: Proxy, chroot: str, is_silent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with opened(proxy.address + chroot) as metadata:
            store = metadata.connect()
            await store.transact([Create("/a", b"1")])
            if is_silent:
                proxy.drop(requests=True, responses=True)
            else:
                proxy.refuse()
                proxy.cut()
                await until(lambda: not store.is_connected)
            monkeypatch.setattr(session, "RESPOND_WITHIN_S", 0.5)
            started = time.monotonic()
            for call in (store.get("/a"), store.get_many(["/a"] * 50), store.transact([Create("/b")])):
                with pytest.raises(UnknownOutcome, match="has not responded for"):
                    await call
            assert 1.5 <= time.monotonic() - started < 5
            proxy.drop()
            proxy.refuse(False)
            proxy.cut()
            monkeypatch.undo()
            assert await _read_again(store, "/a") == b"1"

    run(main)


def test_cancelled_call_leaves_the_session_usable(proxy: Proxy, chroot: str) -> None:
    async def main() -> None:
        async with opened(proxy.address + chroot) as metadata:
            store = metadata.connect()
            await store.transact([Create("/a", b"1")])
            proxy.drop(responses=True)
            calls = [asyncio.create_task(store.get("/a")) for _ in range(30)]
            await happened(proxy.responses_dropped)
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
            proxy.drop()
            proxy.cut()
            assert await _read_again(store, "/a") == b"1"

    run(main)


async def _read_again(store: Store, path: str) -> bytes | None:
    while True:
        with contextlib.suppress(UnknownOutcome):
            return await value(store, path)


# -- sessions --------------------------------------------------------------------------------------------------------


def test_expired_session_is_lost_for_good_and_its_nodes_are_gone(
    server: ZooKeeperServer, proxy: Proxy, chroot: str
) -> None:
    async def main() -> None:
        async with (
            opened(proxy.address + chroot, SHORT_MS) as metadata,
            opened(address_of(server) + chroot) as beside,
        ):
            store, other = metadata.connect(), beside.connect()
            await store.transact([Create("/up"), Create("/up/1", ephemeral=True)])
            calls = Calls()
            await store.get("/up", calls)
            waiting = asyncio.create_task(store.wait_lost())
            proxy.refuse()
            proxy.cut()
            await calls.came.wait()  # the connection is lost: look again
            while await other.children("/up"):
                assert not store.is_lost, "only the ensemble can say so"
            assert time.monotonic() > store.safe_until, "the store must know before others that it may be over"

            again = Calls()
            blocked = asyncio.create_task(store.get("/up", again))
            proxy.refuse(False)
            with pytest.raises(SessionLost):
                await blocked
            await waiting
            assert store.is_lost
            connections = proxy.connections
            for call in (store.get("/up"), store.children("/up"), store.get_many(["/up"]), store.transact([])):
                with pytest.raises(SessionLost, match="has expired"):
                    await call
            successor = metadata.connect()
            assert await successor.children("/up") == []
            await successor.transact([Create("/up/1", ephemeral=True)])
            assert proxy.connections == connections + 1, "nothing but the new session may connect"
            assert calls.paths == ["/up"]
            await store.close()
            await store.close()

    run(main)


def test_watches_fire_before_a_silent_session_is_lost(server: ZooKeeperServer, proxy: Proxy, chroot: str) -> None:
    async def main() -> None:
        async with (
            opened(proxy.address + chroot, SHORT_MS) as metadata,
            opened(address_of(server) + chroot) as beside,
        ):
            store, other = metadata.connect(), beside.connect()
            await store.transact([Create("/a"), Create("/mine", ephemeral=True)])
            node, children, absent = Calls(), Calls(), Calls()
            await store.get("/a", node)
            await store.children("/a", children)
            await store.get("/missing", absent)
            proxy.drop(requests=True)  # the server hears nothing more, and no connection breaks
            for calls in (node, children, absent):
                await calls.came.wait()
            assert (node.paths, children.paths, absent.paths) == (["/a"], ["/a"], ["/missing"])
            while await other.get("/mine") is not None:
                assert not store.is_lost
            assert time.monotonic() > store.safe_until
            proxy.drop()
            proxy.cut()
            await store.wait_lost()
            assert (node.paths, children.paths, absent.paths) == (["/a"], ["/a"], ["/missing"])

    run(main)


def test_session_of_an_idle_store_is_confirmed_again_and_again(proxy: Proxy, chroot: str) -> None:
    async def main() -> None:
        async with opened(proxy.address + chroot, SHORT_MS) as metadata:
            store = metadata.connect()
            await store.get("/")
            seen: list[float] = []

            def has_moved() -> bool:
                return store.safe_until > seen[-1]

            for _ in range(3):
                seen.append(store.safe_until)
                await until(has_moved)
                assert time.monotonic() < store.safe_until
            # Requests arrive, and the responses do not: the ensemble keeps the session, and the store cannot know.
            proxy.drop(responses=True)
            await until(lambda: time.monotonic() > store.safe_until)
            assert not store.is_lost

    run(main)


def test_granted_session_timeout_counts_not_the_asked_one(address: str) -> None:
    async def main() -> None:
        async with opened(address, session_timeout_ms=3_600_000) as metadata:
            store = metadata.connect()
            await store.get("/")
            assert store.session.timeout_s == 60
            assert store.safe_until < time.monotonic() + 60

    run(main)


def test_session_closed_without_a_connection_ends_by_itself(server: ZooKeeperServer, proxy: Proxy, chroot: str) -> None:
    async def main() -> None:
        async with (
            opened(proxy.address + chroot, SHORT_MS) as metadata,
            opened(address_of(server) + chroot) as beside,
        ):
            store, other = metadata.connect(), beside.connect()
            await store.transact([Create("/mine", ephemeral=True)])
            calls = Calls()
            assert await other.get("/mine", calls) is not None
            proxy.refuse()
            proxy.cut()
            await until(lambda: not store.is_connected)
            await within(5, store.close())
            assert store.is_lost
            await calls.came.wait()
            assert await other.get("/mine") is None

    run(main)


def test_end_of_the_loop_is_no_problem_for_an_open_session(address: str) -> None:
    stores: list[ZooKeeperStore] = []

    async def main() -> None:
        metadata = await ZooKeeperMetadata.open(address)
        stores.append(metadata.connect())
        await stores[0].get("/")

    run(main)
    stores[0].session._end()


# -- watches ---------------------------------------------------------------------------------------------------------


def test_one_call_of_a_watcher_stands_for_many_changes(address: str) -> None:
    async def main() -> None:
        async with opened(address) as metadata:
            reader, writer = metadata.connect(), metadata.connect()
            await writer.transact([Create("/a")])
            calls = Calls()
            for _ in range(3):  # set three times, called once
                await reader.get("/a", calls)
            for number in range(20):
                await writer.transact([Put("/a", b"%d" % number)])
            await calls.came.wait()
            assert await value(reader, "/a") == b"19"
            assert calls.paths == ["/a"]

    run(main)


def test_no_change_is_missed_while_connections_come_and_go(server: ZooKeeperServer, proxy: Proxy, chroot: str) -> None:
    """A follower of one node and of a directory, and a writer that it does not know of."""

    async def main() -> None:
        async with opened(proxy.address + chroot) as metadata, opened(address_of(server) + chroot) as beside:
            reader, writer = metadata.connect(), beside.connect()
            await writer.transact([Create("/a", b"0"), Create("/dir")])
            seen: list[bytes | None] = []
            names: list[list[str]] = []
            changed = asyncio.Event()

            async def follow() -> None:
                while True:
                    changed.clear()
                    try:
                        node = await reader.get("/a", lambda path: changed.set())
                        names.append(await reader.children("/dir", lambda path: changed.set()))
                    except UnknownOutcome:
                        continue
                    seen.append(None if node is None else node.value)
                    await changed.wait()

            def has_followed() -> bool:
                return bool(seen) and seen[-1] == b"%d" % number and len(names[-1]) == number

            following = asyncio.create_task(follow())
            for number in range(1, 31):
                await writer.transact([Put("/a", b"%d" % number), Create(f"/dir/{number:02}")])
                if number % 5 == 0:
                    proxy.cut()
                await until(has_followed)
            following.cancel()

    run(main)


def test_children_of_a_node_that_does_not_exist_yet_can_be_watched(address: str) -> None:
    async def main() -> None:
        async with opened(address) as metadata:
            reader, writer = metadata.connect(), metadata.connect()
            calls = Calls()
            assert await reader.children("/later", calls) == []
            await writer.transact([Create("/later"), Create("/later/child")])
            await calls.came.wait()
            assert await reader.children("/later", calls) == ["child"]

    run(main)


# -- servers ---------------------------------------------------------------------------------------------------------


def test_killed_server_comes_back_with_data_and_session(tmp_path: Path) -> None:
    server = unless_missing(lambda: zookeeper(tmp_path))

    async def main() -> None:
        async with opened(address_of(server)) as metadata:
            store = metadata.connect()
            await store.transact([Create("/a", b"1"), Create("/mine", ephemeral=True)])
            first = await store.get("/a")
            calls = Calls()
            await store.get("/a", calls)
            await asyncio.to_thread(server.kill)
            await calls.came.wait()
            writing = asyncio.create_task(_until_done(store, Put("/a", b"2", 0)))
            server.start()
            await writing
            node, mine = await store.get("/a"), await store.get("/mine")
            assert node is not None
            assert first is not None
            assert mine is not None
            assert (node.value, node.version, node.created) == (b"2", 1, first.created)
            assert mine.is_mine

    with serving(server):
        run(main)


async def _until_done(store: Store, put: Put) -> None:
    """As callers do it: after an unknown outcome they try again, and a conflict shows that it was carried out."""
    is_open = False
    while True:
        try:
            return await store.transact([put])
        except UnknownOutcome:
            is_open = True
        except VersionConflict:
            assert is_open
            return None


def test_ensemble_with_a_quorum_without_one_and_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    servers = unless_missing(lambda: ensemble(tmp_path))
    monkeypatch.setattr(session, "RESPOND_WITHIN_S", 1.0)

    async def main() -> None:
        await _check_that_reads_are_not_behind_their_own_sessions(servers)
        async with opened(address_of(*servers) + "/kaspar/one", 30_000) as metadata:
            stores = [metadata.connect() for _ in range(4)]
            await stores[0].transact([Create("/a", b"0"), Create("/mine", ephemeral=True)])
            # One member down: the others go on.
            await asyncio.to_thread(servers[0].kill)
            for number, store in enumerate(stores):
                await _until_done(store, Put("/a", b"%d" % number, number))
            # Two members down: nobody can change or read anything, and nobody loses a session.
            await asyncio.to_thread(servers[1].kill)
            await until(lambda: not any(store.is_connected for store in stores))
            for call in (stores[0].transact([Put("/a", b"x", 4)]), stores[1].get("/a")):
                with pytest.raises(UnknownOutcome):
                    await call
            with pytest.raises(KasparError, match=r"no ZooKeeper server of .* responded within 1500 ms"):
                await ZooKeeperMetadata.open(address_of(*servers), connection_timeout_ms=1500)
            assert not any(store.is_lost for store in stores)
            # Two of three again.
            servers[1].start()
            await _until_done(stores[0], Put("/a", b"y", 4))
            for store in stores:
                assert await _read_again(store, "/a") in (b"3", b"y"), "a read may be of a server that is behind"
            mine = await stores[0].get("/mine")
            assert mine is not None
            assert mine.is_mine

    with serving(*servers):
        run(main)


async def _check_that_reads_are_not_behind_their_own_sessions(servers: Sequence[ZooKeeperServer]) -> None:
    """Whichever server it is connected to: a controller stops if the store seems to contradict itself."""
    async with contextlib.AsyncExitStack() as stack:
        stores = [(await stack.enter_async_context(opened(address_of(server)))).connect() for server in servers]
        await stores[0].transact([Create("/fence")])
        for number in range(30):
            writer, *others = stores[number % 3 :] + stores[: number % 3]
            await writer.transact([Put("/fence", b"%d" % number, number)])
            for store in others:
                with pytest.raises(VersionConflict):
                    await store.transact([Put("/fence", b"other", number)])
                assert await value(store, "/fence") == b"%d" % number
            successor = ZooKeeperStore(Session(parse_address(address_of(servers[number % 3 - 1])), 20_000, 10))
            assert await value(successor, "/fence") == b"%d" % number, "a new session is not behind the last"
            await successor.close()


# -- opening ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        (lambda: f"127.0.0.1:{free_port()}", "Connection refused"),
        (lambda: "no-such-host.invalid:2181/kafka", "none of the host names can be resolved"),
    ],
    ids=["nobody listens", "no such host"],
)
def test_wrong_address_is_a_sentence_in_time(address: Callable[[], str], problem: str) -> None:
    async def main() -> None:
        started = time.monotonic()
        with pytest.raises(KasparError, match=rf"responded within 500 ms \({problem}\): check that a majority"):
            await ZooKeeperMetadata.open(address(), connection_timeout_ms=500)
        assert time.monotonic() - started < 4

    run(main)


def test_login_at_a_server_without_sasl_is_a_sentence_and_not_repeated_for_ever(address: str) -> None:
    """Such a server responds to every step of a login with nothing."""

    def has_sasl() -> None:
        if importlib.util.find_spec("puresasl") is None:
            raise ToolMissingError("pure-sasl (kaspar[zookeeper]) is not installed")

    async def main() -> None:
        login = ZooKeeperSecurity(login=Login("broker", "secret", "the settings"))
        with pytest.raises(KasparError, match="it does not know logins by SASL"):
            await ZooKeeperMetadata.open(address, security=login)

    unless_missing(has_sasl)
    run(main)


def test_server_that_accepts_and_does_not_serve_is_named_so(proxy: Proxy) -> None:
    async def main() -> None:
        proxy.refuse()
        with pytest.raises(KasparError, match="it accepts connections and does not serve"):
            await ZooKeeperMetadata.open(proxy.address, connection_timeout_ms=500)
        proxy.refuse(False)
        proxy.drop(responses=True)
        with pytest.raises(KasparError, match="it accepts connections and does not serve"):
            await ZooKeeperMetadata.open(proxy.address, connection_timeout_ms=500)

    run(main)


def test_text_that_is_no_address_is_refused_at_once() -> None:
    async def main() -> None:
        with pytest.raises(InvalidSetting, match=r"zookeeper\.connect is 'localhost:port'"):
            await ZooKeeperMetadata.open("localhost:port")

    run(main)


def test_path_is_created_by_whoever_is_first(address: str) -> None:
    async def main() -> None:
        nested = f"{address}/clusters/one"
        ensembles = await asyncio.gather(*(ZooKeeperMetadata.open(nested) for _ in range(5)))
        await ensembles[0].connect().transact([Create("/a", b"1")])
        assert await value(ensembles[4].connect(), "/a") == b"1"
        async with opened(address) as above:
            assert await value(above.connect(), "/clusters/one/a") == b"1"
        for each in ensembles:
            await each.close()

    run(main)


# -- load ------------------------------------------------------------------------------------------------------------


def test_many_calls_at_once_and_many_nodes_are_read(address: str) -> None:
    async def main() -> None:
        async with opened(address) as metadata:
            store = metadata.connect()
            paths = [f"/nodes/{number}" for number in range(2_000)]
            await store.transact([Create("/nodes"), *(Create(path, path.encode()) for path in paths)])
            nodes = await store.get_many(paths)
            assert [node and node.value for node in nodes] == [path.encode() for path in paths]
            one_by_one = await asyncio.gather(*(store.get(path) for path in paths))
            assert list(one_by_one) == nodes
            await store.transact([*(Delete(path) for path in paths), Delete("/nodes")])

    run(main)


def test_largest_transaction_of_the_smallest_operations_is_accepted(server: ZooKeeperServer, chroot: str) -> None:
    """What the store allows stays below ZooKeeper's limit, with the longest path before every node."""

    async def main() -> None:
        longest = chroot + "/" + "x" * (63 - len(chroot))
        async with opened(address_of(server) + longest) as metadata:
            store = metadata.connect()
            await store.transact([Create("/d")])
            await store.transact([Create(f"/{number}") for number in range(7_600)])
            assert len(await store.children("/")) == 7_601

    run(main)


def test_image_is_kept_in_zookeeper_as_in_the_embedded_store(address: str) -> None:
    async def main() -> None:
        async with opened(address) as metadata:
            stores = [metadata.connect() for _ in range(3)]
            await asyncio.gather(*(prepare_store(store) for store in stores))
            images = [await load_image(store) for store in stores]
            assert images[0] == images[1] == images[2]
            assert (await value(stores[0], store_paths.CLUSTER_ID) or b"").decode() == images[0].cluster_id

    run(main)
