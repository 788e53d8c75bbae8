"""Connections to the other brokers, secured as the listener between brokers requires: TLS with this broker's own key
and trust stores, and authentication with `sasl.mechanism.inter.broker.protocol`.
"""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol, TypedDict, Unpack

from kaspar.base.errors import InvalidSetting, Refused
from kaspar.broker.services import CurrentSettings
from kaspar.config import BrokerSettings
from kaspar.metadata import AdvertisedEndpoint

if TYPE_CHECKING:  # not loaded by a broker without a cluster
    from kaspar.client.asynchronous import AsyncConnection
    from kaspar.security.client import ClientSecurity

READ_AGAIN_S: Final = 60.0
"""Key stores may have been replaced: if they were read longer ago, the next connection reads them again."""


class ConnectOptions(TypedDict, total=False):
    """The options of `AsyncConnection.connect`, which has their defaults."""

    client_id: str
    timeout_s: float
    records_in_place: bool
    negotiate: bool


class ConnectToBroker(Protocol):
    async def __call__(self, host: str, port: int, **options: Unpack[ConnectOptions]) -> "AsyncConnection":
        """Raises OSError while the broker cannot be reached, or does not accept this one."""
        ...


async def connect_in_the_clear(host: str, port: int, **options: Unpack[ConnectOptions]) -> "AsyncConnection":
    from kaspar.client.asynchronous import AsyncConnection

    return await AsyncConnection.connect(host, port, **options)


class BetweenBrokers:
    def __init__(self, settings: CurrentSettings, endpoint: Callable[[], AdvertisedEndpoint]) -> None:
        """`endpoint` returns this broker's own endpoint on the listener between brokers."""
        self._settings = settings
        self._endpoint = endpoint
        self._read: tuple[BrokerSettings, float, ClientSecurity | None] | None = None

    def check(self) -> None:
        """Raises InvalidSetting if the settings are not sufficient to connect to other brokers."""
        self._security()

    async def connect(self, host: str, port: int, **options: Unpack[ConnectOptions]) -> "AsyncConnection":
        """Implements `ConnectToBroker`."""
        if self._endpoint().security_protocol == "PLAINTEXT":
            return await connect_in_the_clear(host, port, **options)
        from kaspar.client.asynchronous import AsyncConnection
        from kaspar.security.client import HandshakeFailed

        try:
            return await AsyncConnection.connect(host, port, **options, security=self._security())
        except (HandshakeFailed, Refused, InvalidSetting) as problem:
            raise ConnectionError(f"no connection to the broker at {host}:{port}: {problem}") from problem

    def _security(self) -> "ClientSecurity | None":
        endpoint, settings = self._endpoint(), self._settings.settings
        if endpoint.security_protocol == "PLAINTEXT":
            return None
        now = time.monotonic()
        if self._read is None or self._read[0] is not settings or now - self._read[1] >= READ_AGAIN_S:
            self._read = settings, now, _client_security(settings, endpoint)
        return self._read[2]


def _client_security(settings: BrokerSettings, endpoint: AdvertisedEndpoint) -> "ClientSecurity | None":
    from kaspar.security.client import client_security

    values = settings.listener_values(endpoint.listener)
    mechanism = values.get("sasl.mechanism.inter.broker.protocol", "GSSAPI").strip()
    values = settings.listener_values(endpoint.listener, mechanism)
    return client_security({**values, "security.protocol": endpoint.security_protocol, "sasl.mechanism": mechanism})
