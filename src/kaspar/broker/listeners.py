"""The broker's listeners as one unit: they are bound before anything else, share the connection limits, and pause
together when the broker is overloaded.
"""

import asyncio
import socket
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from kaspar.broker.metrics import BrokerMetrics
from kaspar.broker.services import CurrentSettings, Failures, Threads
from kaspar.config import BrokerConfig
from kaspar.config.endpoints import Endpoint
from kaspar.metadata import AdvertisedEndpoint
from kaspar.network.connection import RequestHandler
from kaspar.network.listener import Callbacks, ConnectionLimits, Listener, SocketOptions
from kaspar.network.unidentified_connections import UnidentifiedConnections
from kaspar.quotas.connections import ConnectionRates
from kaspar.quotas.rates import Windows

if TYPE_CHECKING:  # not loaded by a broker whose listeners are all PLAINTEXT
    from kaspar.broker.security.credentials import Credentials
    from kaspar.broker.security.listener_security import SecureListener

_CREATION_RATE = "max.connection.creation.rate"
_ANY_ADDRESS = ("", "0.0.0.0", "::")


class Listeners:
    def __init__(
        self, settings: CurrentSettings, metrics: BrokerMetrics, *, threads: Threads, failures: Failures
    ) -> None:
        self.all: list[Listener] = []
        self._secured: list[SecureListener] = []
        self._settings = settings
        self._metrics = metrics
        self._threads = threads
        self._failures = failures
        config = settings.config
        self._unidentified = UnidentifiedConnections(
            config.kaspar_unauthenticated_max_connections, config.kaspar_unauthenticated_timeout_ms
        )
        self._limits = ConnectionLimits(
            max_connections=config.max_connections,
            max_per_ip=config.max_connections_per_ip,
            per_ip_overrides=config.max_connections_by_address,
        )

        self.connection_rates = ConnectionRates()
        self._configure_rates()

    def bind(self, requests: RequestHandler, credentials: "Credentials", now_ms: Callable[[], int]) -> None:
        """Bind all ports. Called before anything else is touched, so that a port in use fails the start before a
        recovery.
        """
        config = self._settings.config
        socket_options = SocketOptions(
            config.socket_send_buffer_bytes, config.socket_receive_buffer_bytes, config.socket_listen_backlog_size
        )
        callbacks = Callbacks(
            slot_freed=self.resume_accepting,
            failed=self._failures.on_bug,
            stalled=self._metrics.stalls.worked,
            run_blocking=self._threads.run_blocking,
        )
        for endpoint in config.endpoints:
            security = None
            if endpoint.security_protocol != "PLAINTEXT":
                from kaspar.broker.security.listener_security import SecureListener

                security = SecureListener(endpoint, self._settings, credentials, now_ms, self._threads)
                self._secured.append(security)
            self.all.append(
                Listener(
                    endpoint.listener,
                    endpoint.host,
                    endpoint.port,
                    requests=requests,
                    limits=self._limits,
                    max_request_bytes=config.socket_request_max_bytes,
                    max_idle_ms=config.connections_max_idle_ms,
                    socket_options=socket_options,
                    callbacks=callbacks,
                    malformed_requests=self._metrics.malformed_requests,
                    security=security,
                    rates=self.connection_rates,
                    unidentified=self._unidentified,
                    between_brokers=len(config.endpoints) > 1 and self._is_between_brokers(endpoint),
                )
            )

    def _is_between_brokers(self, endpoint: Endpoint) -> bool:
        config = self._settings.config
        if config.inter_broker_listener_name is not None:
            return endpoint.listener == config.inter_broker_listener_name
        return endpoint.security_protocol == config.security_inter_broker_protocol

    def serve(self, requests: RequestHandler) -> None:
        """Hand all further requests to this handler."""
        for listener in self.all:
            listener.requests = requests

    def start(self) -> None:
        for listener in self.all:
            listener.start()

    async def stop_accepting(self) -> None:
        for listener in self.all:
            await listener.stop_accepting()

    async def close_connections(self) -> None:
        await asyncio.gather(*(listener.close_connections() for listener in self.all))

    def reconfigure(self) -> None:
        """Apply changed settings."""
        config = self._settings.config
        self._limits.max_connections = config.max_connections
        self._limits.max_per_ip = config.max_connections_per_ip
        self._limits.override_per_ip(config.max_connections_by_address)
        for security in self._secured:
            security.reconfigure()
        self._configure_rates()
        self.resume_accepting()

    def _configure_rates(self) -> None:
        config = self._settings.config
        self.connection_rates.configure(
            Windows(config.quota_window_num, config.quota_window_size_seconds * 1000),
            config.max_connection_creation_rate,
            self._creation_rates(),
        )

    def _creation_rates(self) -> dict[str, int]:
        """The limits of listeners that have their own: `listener.name.NAME.max.connection.creation.rate`."""
        settings = self._settings.settings
        declaration = BrokerConfig.declared[_CREATION_RATE]
        texts = {
            endpoint.listener: settings.static.get(f"listener.name.{endpoint.listener.lower()}.{_CREATION_RATE}")
            for endpoint in settings.config.endpoints
        }
        return {listener: declaration.parse(text) for listener, text in texts.items() if text is not None}

    def resume_accepting(self) -> None:
        for listener in self.all:
            listener.resume_accepting()

    def overload(self, overloaded: bool) -> None:
        """Tell the listeners whether requests have to wait until there is room for them."""
        for listener in self.all:
            listener.overload(overloaded)
        if not overloaded:
            for listener in self.all:
                listener.resume_requests()

    @property
    def between_brokers(self) -> AdvertisedEndpoint:
        """The endpoint at which other brokers reach this one."""
        endpoints = list(self.advertised())
        return inter_broker_endpoint(endpoints, self._settings.config) or endpoints[0]

    def advertised(self) -> Iterator[AdvertisedEndpoint]:
        """The endpoints that clients connect to. The listener's own host and port are used where none is configured."""
        ports = {listener.name: listener.port for listener in self.all}
        for endpoint in self._settings.config.advertised_endpoints:
            host = endpoint.host if endpoint.host not in _ANY_ADDRESS else _own_host()
            port = endpoint.port or ports[endpoint.listener]
            yield AdvertisedEndpoint(endpoint.listener, host, port, endpoint.security_protocol)


def inter_broker_endpoint(endpoints: Iterable[AdvertisedEndpoint], config: BrokerConfig) -> AdvertisedEndpoint | None:
    """The one of a broker's endpoints that other brokers use: chosen by `inter.broker.listener.name`, or else by the
    security protocol between brokers.
    """
    name, protocol = config.inter_broker_listener_name, config.security_inter_broker_protocol
    if name is None:
        return next((each for each in endpoints if each.security_protocol == protocol), None)
    return next((each for each in endpoints if each.listener == name.upper()), None)


def _own_host() -> str:
    """The name of this machine if it resolves, otherwise localhost."""
    name = socket.gethostname()
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return "localhost"
    return name
