"""Requests to the other brokers of the cluster: one connection to each, opened when it is first needed.

The image has the address of each broker (its endpoint for the listener between brokers). When a broker is no longer in
the image, or has a new registration, its connection is closed: no request waits for a process that is known to have
ended.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from typing import Final, TypeVar

from kaspar.base.errors import ErrorCode, MalformedBytes, Refused
from kaspar.base.ids import BrokerId
from kaspar.broker.security.between_brokers import ConnectToBroker, connect_in_the_clear
from kaspar.client.asynchronous import AsyncConnection
from kaspar.client.core import UnsupportedByPeer
from kaspar.metadata.images import ImageChange, ImageSource
from kaspar.protocol.schema import Message

M = TypeVar("M", bound=Message)

CONNECT_WITHIN_S: Final = 5.0


class Peers:
    """For the event loop's thread. Responses on a connection come in the order of its requests, so requests that may
    wait for long get their own `Peers`.
    """

    def __init__(
        self,
        images: ImageSource,
        *,
        listener: Callable[[], str],
        client_id: str,
        connect: ConnectToBroker = connect_in_the_clear,
    ) -> None:
        """`listener` returns the name of the listener between brokers."""
        self._images = images
        self._connect = connect
        self._listener = listener
        self._client_id = client_id
        self._connections: dict[BrokerId, tuple[int, AsyncConnection]] = {}
        self._connecting: defaultdict[BrokerId, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._closed = False

    async def request(
        self,
        broker_id: BrokerId,
        message: Message,
        response_class: type[M],
        *,
        within_s: float,
        version: int | None = None,
    ) -> M:
        """Send a request and return the response. Raises Refused (NETWORK_EXCEPTION) if there is no response; then it
        is unknown whether the request has arrived.
        """
        try:
            connection = await self._connection(broker_id)
            response = await connection.request(message, version, timeout_s=within_s)
        except (OSError, MalformedBytes, UnsupportedByPeer) as problem:
            raise Refused(ErrorCode.NETWORK_EXCEPTION, f"broker {broker_id}: {problem}") from problem
        assert isinstance(response, response_class)
        return response

    def image_changed(self, change: ImageChange) -> None:
        brokers = change.new.brokers
        for broker_id, (epoch, connection) in tuple(self._connections.items()):
            registration = brokers.get(broker_id)
            if registration is None or registration.epoch != epoch:
                del self._connections[broker_id]
                connection.abort()

    async def close(self) -> None:
        """Refuse the waiting requests, and all later ones. Safe to call twice."""
        self._closed = True
        connections, self._connections = self._connections, {}
        for _, connection in connections.values():
            await connection.close()

    async def _connection(self, broker_id: BrokerId) -> AsyncConnection:
        async with self._connecting[broker_id]:
            epoch, host, port = self._address(broker_id)
            known = self._connections.get(broker_id)
            if known is not None and known[0] == epoch and not known[1].is_closed:
                return known[1]
            async with asyncio.timeout(CONNECT_WITHIN_S):
                connection = await self._connect(host, port, client_id=self._client_id)
            if self._closed:
                connection.abort()
                raise ConnectionAbortedError("this broker is stopping")
            self._connections[broker_id] = epoch, connection
            return connection

    def _address(self, broker_id: BrokerId) -> tuple[int, str, int]:
        for registration, endpoint in self._images.current.endpoints_for(self._listener()):
            if registration.broker_id == broker_id and not self._closed:
                return registration.epoch, endpoint.host, endpoint.port
        raise ConnectionError("it is not up, or has no endpoint for other brokers")
