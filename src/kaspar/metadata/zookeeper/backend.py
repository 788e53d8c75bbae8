"""The store's interface over ZooKeeper sessions.

A watch is set by the read request itself, or by a request that is sent just before it. The server handles a session's
requests in order, so no change is missed in between. kazoo does not set watches again after a reconnect; instead all of
them fire when a connection is lost, so that callers read again.

A server may be behind its leader, so a read may be behind the commits of other sessions. It is never behind its own
session: a new session, a change and a refusal are transactions of the ensemble, which a server applies before it
responds. Only a change with an unknown outcome may still be under way. After one, a `sync` is sent before the next
read, so that the leader settles it first.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from kazoo.handlers.utils import AsyncResult
from kazoo.protocol.states import WatchedEvent, ZnodeStat

from kaspar.base.errors import KasparError
from kaspar.config import BrokerConfig
from kaspar.metadata.store import (
    Check,
    Create,
    Delete,
    Node,
    Operation,
    Put,
    UnknownOutcome,
    VersionConflict,
    Watcher,
    check_size,
)
from kaspar.metadata.zookeeper.address import Address, parse_address
from kaspar.metadata.zookeeper.node_acls import acls_of
from kaspar.metadata.zookeeper.refusals import DEFINITE, other_refusal, refusal_in
from kaspar.metadata.zookeeper.session import Session
from kaspar.security.zookeeper import IN_THE_CLEAR, ZooKeeperSecurity, zookeeper_security

Request: TypeAlias = Callable[[KazooClient], AsyncResult]

SESSION_TIMEOUT_MS: Final = 18_000
MAX_IN_FLIGHT: Final = 10


class ZooKeeperMetadata:
    """An ensemble, or a chroot in it. Sessions (`connect`) belong to the event loop that opened it."""

    def __init__(
        self,
        address: Address,
        session_timeout_ms: int,
        max_in_flight: int,
        security: ZooKeeperSecurity = IN_THE_CLEAR,
    ) -> None:
        self.address = address
        self._security = security
        self._session_timeout_ms = session_timeout_ms
        self._max_in_flight = max_in_flight
        self._stores: list[ZooKeeperStore] = []

    @classmethod
    async def open(
        cls,
        connect: str,
        *,
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
        connection_timeout_ms: int | None = None,
        max_in_flight: int = MAX_IN_FLIGHT,
        create: bool = True,
        security: ZooKeeperSecurity = IN_THE_CLEAR,
    ) -> "ZooKeeperMetadata":
        """Check that the ensemble serves requests and, with `create`, create the chroot if it is missing. Raises
        KasparError with a message for users, after `connection_timeout_ms` (by default the session timeout) at the
        latest.
        """
        address = parse_address(connect)
        metadata = cls(address, session_timeout_ms, max_in_flight, security)
        session = Session(replace(address, chroot=""), session_timeout_ms, max_in_flight, security)
        timeout_ms = session_timeout_ms if connection_timeout_ms is None else connection_timeout_ms
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await session.wait_connected()
                if create:
                    await _create_path(ZooKeeperStore(session, sets_acls=security.sets_acls), address.chroot)
        except TimeoutError:
            raise KasparError(
                f"no ZooKeeper server of {address.ensemble} responded within {timeout_ms} ms ({session.problem}): "
                "check that a majority of the ensemble runs, and zookeeper.connect"
            ) from None
        finally:
            await session.close()
        return metadata

    @classmethod
    async def configured(cls, config: BrokerConfig, *, create: bool = True) -> "ZooKeeperMetadata":
        """Open the ensemble with a broker's settings, in which `zookeeper.connect` must be set."""
        assert config.zookeeper_connect is not None
        return await cls.open(
            config.zookeeper_connect,
            session_timeout_ms=config.zookeeper_session_timeout_ms,
            connection_timeout_ms=config.zookeeper_connection_timeout_ms,
            max_in_flight=config.zookeeper_max_in_flight_requests,
            create=create,
            security=zookeeper_security(config, os.environ),
        )

    def connect(self) -> "ZooKeeperStore":
        """Start a new session. Its first calls wait until it is connected."""
        session = Session(self.address, self._session_timeout_ms, self._max_in_flight, self._security)
        store = ZooKeeperStore(session, sets_acls=self._security.sets_acls)
        self._stores = [*(each for each in self._stores if not each.is_lost), store]
        return store

    async def close(self) -> None:
        """End every session. Safe to call twice."""
        await asyncio.gather(*(store.close() for store in self._stores))


class ZooKeeperStore:
    """One session with ZooKeeper."""

    def __init__(self, session: Session, *, sets_acls: bool = False) -> None:
        self.session = session
        self._sets_acls = sets_acls
        self._doubts = 0  # how many outcomes were unknown
        self._settled_doubts = 0

    @property
    def is_lost(self) -> bool:
        return self.session.is_lost

    @property
    def is_connected(self) -> bool:
        return self.session.is_connected

    @property
    def safe_until(self) -> float:
        """The time (`time.monotonic()`) until which the session cannot have expired, even if the ensemble does not
        respond any more. It advances as long as the leader of the ensemble responds."""
        return self.session.safe_until

    async def wait_lost(self) -> None:
        """Wait until the session has expired or was closed."""
        await self.session.wait_lost()

    async def get(self, path: str, watcher: Watcher | None = None) -> Node | None:
        requests: list[Request] = [lambda client: client.get_async(path)]
        if watcher is not None:
            # Only `exists` can watch a node that does not exist.
            watch = _Watch(path, watcher, self.session)
            requests.insert(0, lambda client: client.exists_async(path, watch))
        found: tuple[bytes | None, ZnodeStat] | None = await self._read(path, *requests)
        if found is None:
            return None
        value, stat = found
        return Node(value or b"", stat.version, stat.czxid, stat.ephemeralOwner == self.session.id)

    async def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        found: list[Node | None] = [None] * len(paths)
        numbered = iter(enumerate(paths))

        async def read_on() -> None:
            for number, path in numbered:
                found[number] = await self.get(path)

        readers = [asyncio.ensure_future(read_on()) for _ in range(min(self.session.max_in_flight, len(paths)))]
        try:
            await asyncio.gather(*readers)
        finally:
            for reader in readers:
                reader.cancel()
        return found

    async def children(self, path: str, watcher: Watcher | None = None) -> list[str]:
        watch = None if watcher is None else _Watch(path, watcher, self.session)
        while True:
            names = await self._read(path, lambda client: client.get_children_async(path, watch))
            if names is not None:
                return sorted(names)
            # While the node does not exist, its creation can be watched, but not its children.
            if watch is None or await self._read(path, lambda client: client.exists_async(path, watch)) is None:
                return []

    async def transact(self, operations: Sequence[Operation]) -> None:
        check_size(operations)
        try:
            results = await self.session.call(lambda client: self._commit(client, operations), by_leader=True)
        except BaseException:  # including cancellation of the caller
            self._doubts += 1
            raise
        refused = refusal_in(operations, results)
        if refused is not None:
            raise refused

    async def close(self) -> None:
        await self.session.close()

    def _commit(self, client: KazooClient, operations: Sequence[Operation]) -> AsyncResult:
        transaction = client.transaction()
        for operation in operations:
            match operation:
                case Create(path, value, ephemeral):
                    transaction.create(path, value, acls_of(path, is_secure=self._sets_acls), ephemeral)
                case Put(path, value, version):
                    transaction.set_data(path, value, version)
                case Delete(path, version):
                    transaction.delete(path, version)
                case Check(path, version):
                    transaction.check(path, version)
        return transaction.commit_async()

    async def _read(self, path: str, *requests: Request) -> Any:
        """Send the requests together. The response to the last one; None if the node does not exist."""
        doubts = self._doubts
        if doubts > self._settled_doubts:
            requests = (lambda client: client.sync_async("/"), *requests)
        earlier: list[AsyncResult] = []

        def send(client: KazooClient) -> AsyncResult:
            *first, last = requests
            earlier.extend(request(client) for request in first)
            return last(client)

        try:
            response = await self.session.call(send)
        except NoNodeError:
            response = None
        except DEFINITE as problem:
            raise other_refusal(path, problem) from None
        if not all(result.successful() for result in earlier):  # the connection was lost and restored in between
            raise UnknownOutcome("the connection to ZooKeeper was lost during a read")
        self._settled_doubts = max(self._settled_doubts, doubts)
        return response


@dataclass(frozen=True, slots=True)
class _Watch:
    """A watcher for kazoo, which keeps them in a set: the same watcher is called once, however often it was set."""

    path: str
    watcher: Watcher
    session: Session = field(compare=False)

    def __call__(self, _: WatchedEvent) -> None:
        """Called by kazoo's thread."""
        self.session.pass_on(self._look_again)

    def _look_again(self) -> None:
        if not self.session.is_closed:
            self.watcher(self.path)


async def _create_path(store: ZooKeeperStore, path: str) -> None:
    names = path.split("/")[1:]
    for length in range(1, len(names) + 1):
        prefix = "/" + "/".join(names[:length])
        if await store.get(prefix) is None:
            with contextlib.suppress(VersionConflict):  # another broker was first
                await store.transact([Create(prefix)])
