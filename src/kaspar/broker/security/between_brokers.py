"""Connections to the other brokers, protected as the listener between brokers asks for: TLS with this broker's own key
and trust stores, a log-in with `sasl.mechanism.inter.broker.protocol`.
"""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol, TypedDict, Unpack

from kaspar.base.errors import InvalidSetting, Refused
from kaspar.broker.services import CurrentSettings
from kaspar.config import BrokerSettings
from kaspar.metadata import AdvertisedEndpoint

if TYPE_CHECKING:  # a broker without a cluster starts without them
    from kaspar.client.asynchronous import AsyncConnection
    from kaspar.security.client import ClientSecurity

READ_AGAIN_S: Final = 60.0
"""Key stores may have been replaced: what is older is read again for the next connection."""


class ConnectOptions(TypedDict, total=False):
    """What `AsyncConnection.connect` may be told, which has the defaults."""

    client_id: str
    timeout_s: float
    records_in_place: bool
    negotiate: bool


class ConnectToBroker(Protocol):
    async def __call__(self, host: str, port: int, **options: Unpack[ConnectOptions]) -> "AsyncConnection":
        """Raises OSError while the broker cannot be reached, or does not let this one in."""
        ...


async def connect_in_the_clear(host: str, port: int, **options: Unpack[ConnectOptions]) -> "AsyncConnection":
    from kaspar.client.asynchronous import AsyncConnection

    return await AsyncConnection.connect(host, port, **options)


class BetweenBrokers:
    def __init__(self, settings: CurrentSettings, endpoint: Callable[[], AdvertisedEndpoint]) -> None:
        """`endpoint` is this broker's own on the listener between brokers."""
        self._settings = settings
        self._endpoint = endpoint
        self._read: tuple[BrokerSettings, float, ClientSecurity | None] | None = None

    def check(self) -> None:
        """Raises InvalidSetting if the settings do not suffice to connect to other brokers."""
        self._security()

    async def connect(self, host: str, port: int, **options: Unpack[ConnectOptions]) -> "AsyncConnection":
        """A `ConnectToBroker`."""
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
