"""Runs hosted services in one event loop: binds their listeners, starts them, serves them, and stops them in order.

Services start concurrently, and each is served as soon as it has started. If one cannot start, all are stopped: a
process that serves only some of its services would look healthy.
"""

import asyncio
from collections.abc import Mapping, Sequence

from kaspar.base.errors import KasparError
from kaspar.base.log import get_log
from kaspar.web.authentication import Authenticator, BasicAuthenticator, JwtAuthenticator, TokenAuthenticator
from kaspar.web.credentials import TokensFile, UsersFile
from kaspar.web.files import Loaded, Reloader
from kaspar.web.hosting import HostedService
from kaspar.web.hosts import AllowedHosts
from kaspar.web.limits import connection_limits, request_limits
from kaspar.web.listeners import Listener, bind_all, parse_listeners
from kaspar.web.metrics import HttpMetrics, WithMetricsPage
from kaspar.web.requests import Gate, LogIn
from kaspar.web.server import WebServer
from kaspar.web.settings import WebSettings

log = get_log(__name__)


class _Hosted:
    """One service with its listeners and server."""

    def __init__(self, service: HostedService) -> None:
        """Raises KasparError if settings are invalid or a port is in use."""
        settings = service.settings
        self.service = service
        self._authenticator, credentials = _authenticator_of(settings)
        addresses = parse_listeners(settings.listeners, settings.listener_protocol_map)
        self._tls = None
        self._name_of_peer = None
        if any(address.is_tls for address in addresses):
            from kaspar.security.principal_names import PrincipalMapping, subject_of
            from kaspar.web.tls import StoreTls

            mapping = PrincipalMapping(settings.ssl_principal_mapping_rules)
            self._tls = StoreTls(settings.texts("ssl."), settings.client_auth)
            self._name_of_peer = lambda certificate: mapping.name_of(subject_of(certificate))
        self._reloader = Reloader(*(each for each in (self._tls, credentials) if each is not None))
        self.listeners: list[Listener] = bind_all(addresses, service.name)
        self._server: WebServer | None = None

    @property
    def urls(self) -> tuple[str, ...]:
        return tuple(str(listener.address) for listener in self.listeners)

    async def start(self) -> None:
        await self.service.start()
        settings = self.service.settings
        path = settings.kaspar_http_metrics_path
        metrics = HttpMetrics(self.service.name) if path else None
        app = self.service.app
        gate = Gate(
            app if metrics is None else WithMetricsPage(app, path, metrics),
            log_in=LogIn(
                self._authenticator,
                realm=settings.authentication_realm,
                skipped_paths=settings.authentication_skip_paths,
            ),
            limits=request_limits(settings),
            error_form=self.service.error_form,
            logs_requests=settings.kaspar_http_request_log,
            metrics=metrics,
            hosts=await self._hosts(),
        )
        self._server = WebServer(
            gate,
            self.listeners,
            limits=connection_limits(settings),
            error_form=self.service.error_form,
            tls=self._tls,
            reloader=self._reloader,
            name_of_peer=self._name_of_peer,
        )
        if metrics is not None:
            metrics.under_way, metrics.connections = lambda: gate.under_way, self._server.connection_count
        await self._server.start()
        log.info("a service is ready", service=self.service.name, listeners=",".join(self.urls))

    async def _hosts(self) -> AllowedHosts | None:
        """None if DNS rebinding gains nothing: callers must log in, or the service is open to the network anyway."""
        if self._authenticator is not None or not all(each.is_loopback for each in self.listeners):
            return None
        return await asyncio.to_thread(AllowedHosts, self.urls, self.service.settings.allowed_hosts)

    async def stop(self) -> None:
        """Requests are ended first, because they may need the service to complete."""
        try:
            if self._server is not None:
                await self._server.stop(self.service.settings.shutdown_graceful_ms / 1000)
            await self.service.stop()
        finally:
            self.close()

    def close(self) -> None:
        for listener in self.listeners:
            listener.socket.close()


class Host:
    def __init__(self, services: Sequence[HostedService]) -> None:
        """Binds all listeners. Raises KasparError."""
        self._hosted: list[_Hosted] = []
        try:
            for service in services:
                self._hosted.append(_Hosted(service))
        except BaseException:
            for hosted in self._hosted:
                hosted.close()
            raise
        for hosted in self._hosted:
            hosted.service.bound(hosted.urls)

    @property
    def urls(self) -> Mapping[str, tuple[str, ...]]:
        """The URLs of the listeners, by service name."""
        return {hosted.service.name: hosted.urls for hosted in self._hosted}

    async def start(self) -> None:
        """Return when all services are served. If one cannot start, raises its KasparError and cancels the others. Call
        `stop` in this case, too."""
        starting = {asyncio.create_task(hosted.start()): hosted for hosted in self._hosted}
        try:
            await asyncio.wait(starting, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            for task in starting:
                task.cancel()
            await asyncio.wait(starting)
        for task, hosted in starting.items():
            if not task.cancelled() and (problem := task.exception()) is not None:
                if isinstance(problem, KasparError):
                    raise KasparError(f"{hosted.service.name} cannot start: {problem}") from problem
                raise problem

    async def stop(self) -> None:
        for result in await asyncio.gather(*(hosted.stop() for hosted in self._hosted), return_exceptions=True):
            if isinstance(result, Exception):
                log.error("a service did not stop cleanly", problem=repr(result))


def _authenticator_of(settings: WebSettings) -> tuple[Authenticator | None, Loaded | None]:
    file = settings.kaspar_http_credentials_file
    match settings.authentication_method.upper():
        case "BASIC":
            users = UsersFile(file)
            return BasicAuthenticator(users), users
        case "BEARER" if file:
            tokens = TokensFile(file)
            return TokenAuthenticator(tokens), tokens
        case "BEARER":
            from kaspar.security.jwks import TokenValidator

            return JwtAuthenticator(TokenValidator(settings.texts("sasl.oauthbearer."))), None
        case _:
            return None, None
