"""One session with a ZooKeeper ensemble: its states and its calls, in the event loop.

- A session outlives its connections. While there is none, calls wait for the next one. Without a response within
  seconds their outcome is unknown. They may still be carried out: kazoo sends queued requests when it is connected
  again.
- A session that has expired, or was closed, never comes back: every later call raises SessionLost.
- `confirmed_at` is the last time at which the session is known to have been alive. The leader of the ensemble expires
  sessions, and a server that has lost its leader keeps responding to reads and pings for a while. So only responses
  that need the leader count: transactions, and a `sync` whenever there was none for a sixth of the session timeout.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import (
    AuthFailedError,
    ConnectionLoss,
    KazooException,
    SessionClosedRequireSaslError,
    SessionExpiredError,
)
from kazoo.handlers.utils import AsyncResult
from kazoo.protocol.states import KazooState, KeeperState

from kaspar.base.errors import KasparError
from kaspar.base.log import get_log
from kaspar.metadata.store import SessionLost, StoreError, UnknownOutcome
from kaspar.metadata.zookeeper.address import Address
from kaspar.metadata.zookeeper.refusals import DEFINITE
from kaspar.metadata.zookeeper.wire import Wire
from kaspar.security.zookeeper import IN_THE_CLEAR, JAAS_SETTING, ZooKeeperSecurity

log = get_log(__name__)

RESPOND_WITHIN_S: Final = 10.0
MAX_IN_FLIGHT: Final = 100
"""Each request wakes kazoo's thread by a byte through a socket whose buffer has room for a few hundred bytes. A full
buffer would block the event loop."""

_CLOSE_WITHIN_S: Final = 5.0
_GIVE_UP_WITHIN_S: Final = 1.0
_RECONNECT: Final = {"max_tries": -1, "delay": 0.1, "backoff": 2, "max_delay": 1.0}
_CONFIRMATIONS_PER_TIMEOUT: Final = 6
_SAFE_PART: Final = 2 / 3

# kazoo logs every attempt to connect, so only its errors are logged. This module logs what operators need.
_kazoo_log = logging.getLogger(f"{__name__}.kazoo")
_kazoo_log.setLevel(logging.ERROR)


class Session:
    """One session. It starts to connect at once. Methods run in the event loop, except those called by kazoo's thread
    (`_state_changed`, `_logged_in`, `_pass_on_state`, `pass_on`) and `_end`, which has its own thread.
    """

    def __init__(
        self, address: Address, timeout_ms: int, max_in_flight: int, security: ZooKeeperSecurity = IN_THE_CLEAR
    ) -> None:
        timeout_s = timeout_ms / 1000
        self.id: int | None = None
        self.max_in_flight = min(max_in_flight, MAX_IN_FLIGHT)
        self.is_closed = False
        self.is_lost = False
        self.is_connected = False
        self.confirmed_at = time.monotonic()
        self._address = address
        self._security = security
        self._asked_timeout_s = timeout_s
        self._loop = asyncio.get_running_loop()
        self._settled = asyncio.Event()  # connected, or lost
        self._lost = asyncio.Event()
        self._ended = asyncio.Event()
        self._slots = asyncio.Semaphore(self.max_in_flight)
        self._refused = asyncio.Event()
        self._refusal = ""  # why the session was lost, if it did not expire
        self._wire = Wire(
            timeout_s / (len(address.servers) + 1),
            security,
            servers=len(set(address.servers)),
            on_refused=lambda sentence: self.pass_on(self._note_refused, sentence),
        )
        self._client = KazooClient(
            hosts=str(address),
            timeout=timeout_s,
            handler=self._wire,
            connection_retry=_RECONNECT,
            logger=_kazoo_log,
            sasl_options=_sasl_options(security),
        )
        self._client.add_listener(self._state_changed)
        self._client.start_async()
        self._confirming = self._loop.create_task(self._keep_confirming(), name="zookeeper-session")

    # -- what callers ask --------------------------------------------------------------------------------------------

    @property
    def timeout_s(self) -> float:
        """The session timeout that the ensemble has granted, or the requested one before the first connection."""
        return self._wire.granted_ms / 1000 or self._asked_timeout_s

    @property
    def safe_until(self) -> float:
        """The time (`time.monotonic()`) until which the ensemble cannot have expired the session, if the timeout is at
        least six ticks of the ensemble. A server reports the active sessions to its leader once per tick."""
        return self.confirmed_at + self.timeout_s * _SAFE_PART

    @property
    def problem(self) -> str:
        """Why there is no connection."""
        return self._wire.problem

    async def call(self, send: Callable[[KazooClient], AsyncResult], *, by_leader: bool = False) -> Any:
        """Send a request and return the response. Raises an error in DEFINITE, UnknownOutcome or SessionLost."""
        try:
            async with asyncio.timeout(RESPOND_WITHIN_S), self._slots:
                await self._until_connected()
                sent_at = time.monotonic()
                response = await self._response(send)
        except TimeoutError:
            raise UnknownOutcome(
                f"ZooKeeper at {self._address} has not responded for {RESPOND_WITHIN_S:g} s"
                + ("" if self.is_connected else f": {self.problem}")
            ) from None
        except DEFINITE:
            raise
        except (SessionExpiredError, AuthFailedError, SessionClosedRequireSaslError) as problem:
            self._lose(self._refusal_of(problem))
            raise self._session_lost() from None
        except KazooException as problem:
            raise UnknownOutcome(f"the connection to ZooKeeper was lost ({type(problem).__name__})") from None
        if by_leader:
            self.confirmed_at = max(self.confirmed_at, sent_at)
        return response

    async def wait_connected(self) -> None:
        """Wait for a connection. Raises KasparError if all servers refuse this client."""
        waiting = [asyncio.ensure_future(each) for each in (self._until_connected(), self._refused.wait())]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waiting:
                each.cancel()
            connected, _ = await asyncio.gather(*waiting, return_exceptions=True)
        if isinstance(connected, StoreError):
            raise connected
        if connected is not None:
            raise KasparError(f"ZooKeeper at {self._address.ensemble} cannot be used: {self.problem}")

    async def wait_lost(self) -> None:
        """Wait until the session has expired or was closed."""
        await self._lost.wait()

    async def close(self) -> None:
        """End the session. If the ensemble cannot be reached, the session expires there."""
        self.is_closed = True
        within = _CLOSE_WITHIN_S if self.is_connected else _GIVE_UP_WITHIN_S
        self._lose()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._ended.wait()

    def pass_on(self, function: Callable[..., None], *arguments: object) -> None:
        """Call a function in the event loop, from another thread. The order of calls is kept."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: there are no callers any more
            self._loop.call_soon_threadsafe(function, *arguments)

    # -- states ------------------------------------------------------------------------------------------------------

    def _state_changed(self, state: str) -> None:
        """Called by kazoo's thread. kazoo reports a connection before the login is complete, so with a login the
        response to a first request decides whether it has succeeded.
        """
        if state == KazooState.CONNECTED and self._security.login is not None:
            self._client.exists_async("/").rawlink(self._logged_in)
            return
        self._pass_on_state(state)

    def _logged_in(self, result: AsyncResult) -> None:
        """Called by kazoo's thread."""
        if isinstance(result.exception, SessionClosedRequireSaslError):
            self.pass_on(self._lose, self._refusal_of(result.exception))
        elif not isinstance(result.exception, ConnectionLoss | AuthFailedError | SessionExpiredError):
            self._pass_on_state(KazooState.CONNECTED)

    def _pass_on_state(self, state: str) -> None:
        if state == KazooState.LOST:
            self._wire.session_is_over = True  # set here, before kazoo connects again and opens another session
            if self._client.client_state == KeeperState.AUTH_FAILED:
                self.pass_on(self._lose, self._refusal_of(AuthFailedError()))
        identity = self._client.client_id
        self.pass_on(self._follow, state, identity and identity[0], self._wire.connecting_since)

    def _follow(self, state: str, session_id: int | None, connecting_since: float) -> None:
        if self.is_lost:
            return
        if state == KazooState.LOST:
            log.warning("the session with ZooKeeper has expired", ensemble=self._address)
            self._lose()
            return
        if state != KazooState.CONNECTED or session_id is None:
            self._disconnected()
            return
        assert self.id in (None, session_id), "a session has one id"
        if self.id is not None:
            log.info("connected to ZooKeeper again", ensemble=self._address)
        self.id = session_id
        self.is_connected = True
        self.confirmed_at = max(self.confirmed_at, connecting_since)
        self._refused.clear()
        self._settled.set()

    def _disconnected(self) -> None:
        if self.is_connected:
            self.is_connected = False
            self._settled.clear()
            log.warning("the connection to ZooKeeper was lost", ensemble=self._address)

    async def _until_connected(self) -> None:
        while not self.is_connected:
            if self.is_lost:
                raise self._session_lost()
            await self._settled.wait()

    def _note_refused(self, sentence: str) -> None:
        if not self._refused.is_set():
            self._refused.set()
            log.warning("ZooKeeper cannot be used", ensemble=self._address, reason=sentence)

    def _refusal_of(self, problem: KazooException) -> str:
        login = self._security.login
        if isinstance(problem, AuthFailedError) and login is not None:
            return (
                f"ZooKeeper at {self._address.ensemble} does not accept the login of {login.username}: check username "
                f"and password in {login.source}"
            )
        if isinstance(problem, SessionClosedRequireSaslError):
            return (
                f"ZooKeeper at {self._address.ensemble} requires a client that authenticates: set {JAAS_SETTING}, or "
                "zookeeper.ssl.keystore.location if it is to be known by its certificate"
            )
        return ""

    def _lose(self, refusal: str = "") -> None:
        if not self.is_lost:
            self.is_lost = True
            self._refusal = refusal
            if refusal:
                log.warning("the session with ZooKeeper has ended", reason=refusal)
            self.is_connected = False
            self._wire.session_is_over = True
            self._confirming.cancel()
            self._settled.set()
            self._lost.set()
            self._wire.spawn(self._end)

    def _end(self) -> None:
        """Stop kazoo. Runs in its own thread, because it waits for kazoo's thread."""
        with contextlib.suppress(KazooException, OSError):
            self._client.stop()
            self._client.close()
        self.pass_on(self._ended.set)

    def _session_lost(self) -> SessionLost:
        if self._refusal and not self.is_closed:
            return SessionLost(self._refusal)
        return SessionLost("the session with ZooKeeper " + ("is closed" if self.is_closed else "has expired"))

    # -- calls -------------------------------------------------------------------------------------------------------

    def _response(self, send: Callable[[KazooClient], AsyncResult]) -> "asyncio.Future[Any]":
        future: asyncio.Future[Any] = self._loop.create_future()

        def take(result: AsyncResult) -> None:
            if isinstance(result.exception, ConnectionLoss):
                self._disconnected()  # kazoo reports it only later, but the caller's next call has to wait
            if not future.done():
                if result.exception is None:
                    future.set_result(result.value)
                else:
                    future.set_exception(result.exception)

        send(self._client).rawlink(lambda result: self.pass_on(take, result))
        return future

    async def _keep_confirming(self) -> None:
        while True:
            interval_s = self.timeout_s / _CONFIRMATIONS_PER_TIMEOUT
            await asyncio.sleep(max(0.0, self.confirmed_at + interval_s - time.monotonic()))
            if time.monotonic() < self.confirmed_at + interval_s:
                continue  # a transaction has confirmed the session meanwhile
            try:
                await self.call(lambda client: client.sync_async("/"), by_leader=True)
            except StoreError:
                await asyncio.sleep(interval_s)


def _sasl_options(security: ZooKeeperSecurity) -> dict[str, Any] | None:
    login = security.login
    if login is None:
        return None
    return {
        "mechanism": "DIGEST-MD5",
        "service": "zookeeper",
        "username": login.username,
        "password": login.password,
        "qops": ("auth",),
    }
