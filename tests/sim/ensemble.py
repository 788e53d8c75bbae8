"""ZooKeeper, as the store's interface knows it: sessions, ephemeral nodes, versions, watches, and its hard parts.

- A session lives as long as the ensemble hears from it within its timeout. Its process learns that it is over when it
  asks.
- Each session has its own server, which is behind the leader of the ensemble by a while: reads are stale, though never
  behind what the session itself knows, and watches fire late.
- While the link is cut, calls hang. Then the connection counts as lost: their outcome is unknown, all watches fire, and
  a transaction that was under way may arrive much later, though before the next call of its session.
"""

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from kaspar.metadata.store import (
    ANY_VERSION,
    Check,
    Create,
    Delete,
    Node,
    Operation,
    Put,
    SessionLost,
    UnknownOutcome,
    VersionConflict,
    Watcher,
    check_size,
    parent_of,
)
from tests.sim.network import Network
from tests.sim.virtual_loop import WORLD, Process, VirtualLoop, this_process

HOST: Final = "zookeeper"
SAFE_PART: Final = 2 / 3
CONFIRMATIONS_PER_TIMEOUT: Final = 6
CONNECTION_LOST_AFTER_S: Final = 1.0

Response = Any


@dataclass(frozen=True, slots=True)
class _Stored:
    value: bytes
    version: int
    created: int
    owner: int = 0


@dataclass(slots=True, eq=False)
class _ServerSession:
    number: int
    timeout_s: float
    client: "VirtualSession"
    expires_at: float
    applied: int
    """Up to which transaction its server is."""
    is_over: bool = False
    watches: dict[str, list[Watcher]] = field(default_factory=dict)
    child_watches: dict[str, list[Watcher]] = field(default_factory=dict)


class Ensemble:
    def __init__(self, loop: VirtualLoop, network: Network, rng: random.Random, *, timeout_s: float) -> None:
        self.loop = loop
        self.network = network
        self.rng = rng
        self.timeout_s = timeout_s
        self.loss_rate = 0.0
        """How often a call loses its connection, although the link is open."""
        self.lag_s = 0.005
        self.sessions: dict[int, _ServerSession] = {}
        self.on_commit: Callable[[Process | None, Sequence[Operation]], None] = lambda process, operations: None
        self._history: dict[str, list[tuple[int, _Stored | None]]] = {"/": [(0, _Stored(b"", 0, 0))]}
        self._changed: list[tuple[str, ...]] = []
        """By each transaction."""
        self._last = 0
        self._last_session = 0

    @property
    def last_transaction(self) -> int:
        return self._last

    # -- state -------------------------------------------------------------------------------------------------------

    def find(self, path: str, at: int | None = None) -> _Stored | None:
        """As it was after transaction `at`; as it is now, without."""
        versions = self._history.get(path, ())
        for number, stored in reversed(versions):
            if at is None or number <= at:
                return stored
        return None

    def names(self, path: str, at: int | None = None) -> list[str]:
        prefix = path if path == "/" else path + "/"
        found = [each for each in self._history if each.startswith(prefix) and each != path]
        direct = [each for each in found if "/" not in each[len(prefix) :] and self.find(each, at) is not None]
        return sorted(each[len(prefix) :] for each in direct)

    def _commit(self, session: _ServerSession | None, operations: Sequence[Operation]) -> VersionConflict | None:
        draft: dict[str, _Stored | None] = {}

        def current(path: str) -> _Stored | None:
            return draft[path] if path in draft else self.find(path)

        number = self._last + 1
        for operation in operations:
            path, found = operation.path, current(operation.path)
            if isinstance(operation, Create):
                if found is not None or current(parent_of(path)) is None:
                    return VersionConflict(path, "exists, or its parent does not")
                owner = session.number if operation.ephemeral and session is not None else 0
                draft[path] = _Stored(operation.value, 0, number, owner)
                continue
            if found is None:
                return VersionConflict(path, "does not exist")
            if operation.version not in (ANY_VERSION, found.version):
                return VersionConflict(path, f"has version {found.version}, not {operation.version}")
            if isinstance(operation, Check):
                continue
            if isinstance(operation, Put):
                draft[path] = _Stored(operation.value, found.version + 1, found.created, found.owner)
            else:
                if any(current(f"{path}/{name}") is not None for name in self.names(path)):
                    return VersionConflict(path, "has children")
                draft[path] = None
        self._last = number
        self._changed.append(tuple(draft))
        for path, stored in draft.items():
            self._history.setdefault(path, []).append((number, stored))
        self.on_commit(None if session is None else session.client.process, operations)
        for each in list(self.sessions.values()):
            if each is not session:
                self.loop.call_later(self._lag(), self._apply, each, number, context=WORLD)
        return None

    def _lag(self) -> float:
        return self.rng.random() * (self.lag_s if self.rng.random() < 0.95 else 40 * self.lag_s)

    def _apply(self, session: _ServerSession, number: int) -> None:
        """The session's server has got so far: watches fire for what it has seen change."""
        if number <= session.applied or session.is_over:
            return
        before, session.applied = session.applied, number
        fired: list[tuple[Watcher, str]] = []
        for path in (path for paths in self._changed[before:number] for path in paths):
            fired += [(watcher, path) for watcher in session.watches.pop(path, ())]
            parent = parent_of(path)
            fired += [(watcher, parent) for watcher in session.child_watches.pop(parent, ())]
        if fired:
            session.client.to_client(partial(_fire, fired))

    # -- sessions ----------------------------------------------------------------------------------------------------

    def connect(self) -> "VirtualSession":
        return VirtualSession(self, this_process())

    def open_session(self, client: "VirtualSession") -> _ServerSession:
        self._last_session += 1
        session = _ServerSession(
            self._last_session, self.timeout_s, client, self.loop.time() + self.timeout_s, self._last
        )
        self.sessions[session.number] = session
        self.loop.call_later(self.timeout_s, self._maybe_expire, session, context=WORLD)
        return session

    def _maybe_expire(self, session: _ServerSession) -> None:
        if session.is_over:
            return
        if self.loop.time() >= session.expires_at:
            self.end(session)
        else:
            self.loop.call_at(session.expires_at, self._maybe_expire, session, context=WORLD)

    def end(self, session: _ServerSession) -> None:
        """It has expired, or was closed."""
        if not session.is_over:
            session.is_over = True
            del self.sessions[session.number]
            paths = [path for path in self._history if (it := self.find(path)) and it.owner == session.number]
            if paths:
                self._commit(None, [Delete(path) for path in paths])

    def sessions_of(self, process: Process) -> list[_ServerSession]:
        return [each for each in self.sessions.values() if each.client.process is process]

    # -- requests ----------------------------------------------------------------------------------------------------

    def handle(self, session: _ServerSession, request: Callable[[_ServerSession], Response]) -> Response:
        if session.is_over:
            return SessionLost("the session with ZooKeeper has expired")
        session.expires_at = self.loop.time() + session.timeout_s
        return request(session)

    def transact(self, operations: Sequence[Operation], session: _ServerSession) -> Response:
        outcome = self._commit(session, operations)
        self._apply(session, self._last)
        return outcome

    def sync(self, session: _ServerSession) -> Response:
        self._apply(session, self._last)

    def get(self, path: str, watcher: Watcher | None, session: _ServerSession) -> Response:
        if watcher is not None:
            session.watches.setdefault(path, []).append(watcher)
        found = self.find(path, session.applied)
        return found and Node(found.value, found.version, found.created, found.owner == session.number)

    def children(self, path: str, watcher: Watcher | None, session: _ServerSession) -> Response:
        if watcher is not None:
            session.child_watches.setdefault(path, []).append(watcher)
        return self.names(path, session.applied)


def _fire(watchers: Sequence[tuple[Watcher, str]]) -> None:
    for watcher, path in watchers:
        watcher(path)


class VirtualSession:
    """The process's side of a session: what the product has as ZooKeeperStore."""

    def __init__(self, ensemble: Ensemble, process: Process) -> None:
        self.process = process
        self.is_lost = False
        self.is_closed = False
        self._ensemble = ensemble
        self._loop = ensemble.loop
        self._session = ensemble.open_session(self)
        self._confirmed_at = self._loop.time()
        self._calls: dict[asyncio.Future[Response], bool] = {}
        self._lost = asyncio.Event()
        self._last_arrival = {True: 0.0, False: 0.0}
        self._confirming = self._loop.create_task(self._keep_confirming(), name="zookeeper session")

    # -- the store's interface ---------------------------------------------------------------------------------------

    @property
    def is_connected(self) -> bool:
        return not self.is_lost

    @property
    def safe_until(self) -> float:
        return self._confirmed_at + self._session.timeout_s * SAFE_PART

    async def wait_lost(self) -> None:
        await self._lost.wait()

    async def get(self, path: str, watcher: Watcher | None = None) -> Node | None:
        found: Node | None = await self._call(partial(self._ensemble.get, path, watcher))
        return found

    async def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        return [await self.get(path) for path in paths]

    async def children(self, path: str, watcher: Watcher | None = None) -> list[str]:
        names: list[str] = await self._call(partial(self._ensemble.children, path, watcher))
        return names

    async def transact(self, operations: Sequence[Operation]) -> None:
        check_size(operations)
        sent_at = self._loop.time()
        try:
            refused = await self._call(partial(self._ensemble.transact, tuple(operations)))
        except SessionLost:
            raise
        self._confirmed_at = max(self._confirmed_at, sent_at)
        if refused is not None:
            raise refused

    async def close(self) -> None:
        if not self.is_closed and not self.is_lost:
            session, ensemble = self._session, self._ensemble
            self._to_server(lambda: ensemble.end(session))
        self.is_closed = True
        self._lose()

    # -- calls -------------------------------------------------------------------------------------------------------

    async def _call(self, request: Callable[[_ServerSession], Response]) -> Response:
        if self.is_lost:
            raise self._over()
        future: asyncio.Future[Response] = self._loop.create_future()
        self._calls[future] = True
        ensemble, session = self._ensemble, self._session
        lost_at = ensemble.rng.choice(("sent", "received")) if ensemble.rng.random() < ensemble.loss_rate else ""
        arrives_late = ensemble.rng.random() < 0.5

        def receive() -> None:
            """At the server. A call of a connection that is lost may still be under way."""
            if future not in self._calls and not arrives_late:
                return
            if lost_at == "sent" and not arrives_late:
                return
            response = ensemble.handle(session, request)
            if not lost_at:
                self.to_client(partial(self._responded, future, response))

        self._to_server(receive)
        lost_after = ensemble.rng.random() * 0.05 if lost_at else CONNECTION_LOST_AFTER_S
        timer = self._loop.call_later(lost_after, self._connection_lost)
        try:
            return await future
        finally:
            timer.cancel()
            self._calls.pop(future, None)

    def _responded(self, future: asyncio.Future[Response], response: Response) -> None:
        if future not in self._calls or future.done():
            return
        if isinstance(response, SessionLost):
            self._lose()
        else:
            future.set_result(response)

    def _connection_lost(self) -> None:
        """All calls end as unknown, and every watch fires."""
        calls, self._calls = self._calls, {}
        for future in calls:
            if not future.done():
                future.set_exception(UnknownOutcome("the connection to ZooKeeper was lost"))
        self._fire_all()

    def _fire_all(self) -> None:
        session = self._session
        for watches in (session.watches, session.child_watches):
            fired = [(watcher, path) for path, watchers in watches.items() for watcher in watchers]
            watches.clear()
            if not self.is_closed:
                _fire(fired)

    def _lose(self) -> None:
        if not self.is_lost:
            self.is_lost = True
            self._confirming.cancel()
            self._lost.set()
            for future in self._calls:
                if not future.done():
                    future.set_exception(self._over())
            self._fire_all()

    def _over(self) -> SessionLost:
        return SessionLost("the session with ZooKeeper " + ("is closed" if self.is_closed else "has expired"))

    # -- the way there and back, in order ----------------------------------------------------------------------------

    def _to_server(self, callback: Callable[[], None]) -> None:
        self._travel(True, callback, (self.process.host, HOST))

    def to_client(self, callback: Callable[[], None]) -> None:
        def deliver() -> None:
            if not self.is_closed:
                self._loop.call_soon(callback, context=self.process.context)

        self._travel(False, deliver, (HOST, self.process.host))

    def _travel(self, there: bool, callback: Callable[[], None], link: tuple[str, str]) -> None:
        network = self._ensemble.network
        at = self._last_arrival[there] = max(self._loop.time() + network.latency(), self._last_arrival[there])
        self._loop.call_at(at, lambda: network.when_open(*link, callback), context=WORLD)

    async def _keep_confirming(self) -> None:
        interval_s = self._session.timeout_s / CONFIRMATIONS_PER_TIMEOUT
        while True:
            await asyncio.sleep(interval_s)
            sent_at = self._loop.time()
            try:
                await self._call(self._ensemble.sync)
            except UnknownOutcome:
                continue
            except SessionLost:
                return
            self._confirmed_at = max(self._confirmed_at, sent_at)


class VirtualMetadata:
    """What the product has as ZooKeeperMetadata."""

    address = HOST

    def __init__(self, ensemble: Ensemble) -> None:
        self._ensemble = ensemble
        self._sessions: list[VirtualSession] = []

    def connect(self) -> VirtualSession:
        session = self._ensemble.connect()
        self._sessions.append(session)
        return session

    async def close(self) -> None:
        for session in self._sessions:
            await session.close()
