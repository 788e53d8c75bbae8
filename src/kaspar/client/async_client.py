"""The asyncio client of a cluster: runs the decisions of cluster_core.py and coordinators.py over its connections.

    async with AsyncClient("localhost:9092") as client:
        await client.request_at(("localhost", 9093), WriteTxnMarkersRequest(...), WriteTxnMarkersResponse)
        fetched = await client.fetch("topic", 0, offset)
        response = await client.run(request_coordinator(client.core, CoordinatorKind.TRANSACTION, ...))

All tasks share one connection for each broker, so requests that the broker may hold for long need their own
AsyncConnection. A connection that has ended is replaced at its next use.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, assert_never

from kaspar.base.errors import KasparError
from kaspar.client.asynchronous import MAX_IN_FLIGHT, AsyncConnection
from kaspar.client.cluster_core import ClusterCore
from kaspar.client.core import MAX_FRAME_BYTES, REQUEST_TIMEOUT_S
from kaspar.client.steps import Address, Connect, Send, SendAll, SendOnly, Step, Steps, Wait

if TYPE_CHECKING:
    from kaspar.security.client import ClientSecurity

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def _runs(
    decision: Callable[Concatenate[ClusterCore, _Parameters], Steps[_Result]],
) -> Callable[Concatenate["AsyncClient", _Parameters], Coroutine[Any, Any, _Result]]:
    """A method of AsyncClient that runs this decision of ClusterCore."""

    @wraps(decision)
    def method(
        client: "AsyncClient", /, *args: _Parameters.args, **kwargs: _Parameters.kwargs
    ) -> Coroutine[Any, Any, _Result]:
        return client.run(decision(client.core, *args, **kwargs))

    return method


class ClientClosed(KasparError):
    """The client was closed. Not an OSError: nothing is retried."""


class AsyncClient:
    """A client for many tasks of one event loop. Its methods are those of ClusterCore, as coroutines."""

    def __init__(
        self,
        bootstrap_servers: str = "",
        *,
        client_id: str = "kaspar",
        timeout_s: float = REQUEST_TIMEOUT_S,
        max_frame_bytes: int = MAX_FRAME_BYTES,
        max_in_flight: int = MAX_IN_FLIGHT,
        records_in_place: bool = False,
        security: "ClientSecurity | None" = None,
    ) -> None:
        """Without `bootstrap_servers` only requests to given addresses are possible."""
        self.client_id = client_id
        self.security = security
        self.timeout_s = timeout_s
        self.max_frame_bytes = max_frame_bytes
        self.max_in_flight = max_in_flight
        self.records_in_place = records_in_place
        self.core = ClusterCore(bootstrap_servers, timeout_s=timeout_s, is_connected=self._is_connected)
        self._connections: dict[Address, AsyncConnection] = {}
        self._connecting: defaultdict[Address, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._is_closed = False

    request = _runs(ClusterCore.request)
    request_controller = _runs(ClusterCore.request_controller)
    request_broker = _runs(ClusterCore.request_broker)
    request_at = _runs(ClusterCore.request_at)
    request_all_at = _runs(ClusterCore.request_all_at)
    request_leader = _runs(ClusterCore.request_leader)
    refresh_metadata = _runs(ClusterCore.refresh_metadata)
    leader_of = _runs(ClusterCore.leader_of)
    produce = _runs(ClusterCore.produce)
    fetch = _runs(ClusterCore.fetch)
    offset_at = _runs(ClusterCore.offset_at)

    # --- running decisions --------------------------------------------------------------------------------------------

    async def run(self, steps: Steps[_Result]) -> _Result:
        """Carry out the steps of a decision until it returns or raises. Cancellation keeps the connections open."""
        try:
            step = next(steps)
            while True:
                try:
                    result = await self._perform(step)
                except Exception as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(result)
        except StopIteration as returned:
            value: _Result = returned.value
            return value

    async def _perform(self, step: Step) -> object:
        match step:
            case Send(address, message, version):
                return await (await self._connection(address)).request(message, version)
            case Connect(address):
                return (await self._connection(address)).core
            case SendOnly(address, message):
                await (await self._connection(address)).send_only(message)
                return None
            case SendAll(address, messages, version):
                return await (await self._connection(address)).request_all(messages, version)
            case Wait(seconds):
                await asyncio.sleep(seconds)
                return None
        assert_never(step)

    def _is_connected(self, address: Address) -> bool:
        connection = self._connections.get(address)
        return connection is not None and not connection.is_closed

    async def _connection(self, address: Address) -> AsyncConnection:
        connection = self._connections.get(address)
        if connection is not None and not connection.is_closed:
            return connection
        async with self._connecting[address]:  # only one task connects; others that need the connection wait
            connection = self._connections.get(address)
            if connection is None or connection.is_closed:
                self._check_open()
                connection = await AsyncConnection.connect(
                    *address,
                    client_id=self.client_id,
                    timeout_s=self.timeout_s,
                    max_frame_bytes=self.max_frame_bytes,
                    records_in_place=self.records_in_place,
                    max_in_flight=self.max_in_flight,
                    security=self.security,
                )
                if self._is_closed:
                    await connection.close()
                    self._check_open()
                self._connections[address] = connection
        return connection

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClientClosed("the client is closed")

    async def close(self) -> None:
        """Close all connections. Callers that wait for a response get ConnectionAbortedError."""
        self._is_closed = True
        for connection in list(self._connections.values()):
            await connection.close()
        self._connections.clear()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
