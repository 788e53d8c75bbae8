"""A running registry: creates the client, the log, the election, the forwarder and the application from its settings. A
host serves it (kaspar.web.hosting.HostedService).
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from kaspar.base.errors import KasparError, Refused
from kaspar.base.log import get_log
from kaspar.client.async_client import AsyncClient
from kaspar.registry.api import make_app
from kaspar.registry.api.media_types import V1_JSON
from kaspar.registry.authorization import PermissionsFile
from kaspar.registry.forwarding import HttpForwarder
from kaspar.registry.leadership import GroupLeadership
from kaspar.registry.log.follower import LogFollower
from kaspar.registry.log.schema_log import KafkaSchemaLog
from kaspar.registry.log.topic import UnusableTopic, ensure_topic
from kaspar.registry.records import noop_record
from kaspar.registry.service import RegistryService
from kaspar.registry.serving import Edition, ServedLog
from kaspar.registry.settings import RegistryConfig, RegistrySettings
from kaspar.registry.state import State
from kaspar.security.client import client_security
from kaspar.security.tls import client_context
from kaspar.web.asgi import App
from kaspar.web.errors import ErrorForm, json_error_form
from kaspar.web.files import Reloader

log = get_log(__name__)

_REQUEST_TIMEOUT_S: Final = 10.0
_RETRY_S: Final = 0.25
_REPORT_EVERY_S: Final = 5.0
_RELOAD_EVERY_S: Final = 5.0


class RegistryNotStarted(KasparError):
    """The registry could not be started. The message is shown to the operator."""


class RegistryServer:
    """A HostedService."""

    def __init__(self, config: RegistryConfig) -> None:
        self._config = config
        self._bound: tuple[str, ...] = config.settings.listeners
        self._cluster_id = ""
        self._client: AsyncClient | None = None
        self._served: ServedLog | None = None
        self._follower: LogFollower | None = None
        self._leadership: GroupLeadership | None = None
        self._forwarder: HttpForwarder | None = None
        self._permissions: PermissionsFile | None = None
        self._tasks: list[asyncio.Task[None]] = []

    # --- Interface of the host ----------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return "registry"

    @property
    def settings(self) -> RegistrySettings:
        return self._config.settings

    @property
    def error_form(self) -> ErrorForm:
        return json_error_form(V1_JSON)

    @property
    def listeners(self) -> tuple[str, ...]:
        """The URLs of the listeners."""
        return self._bound

    @property
    def app(self) -> App:
        assert self._served is not None, "the registry is not running"
        return self._served

    def bound(self, listeners: Sequence[str]) -> None:
        self._bound = tuple(listeners)

    # --- Start and stop -----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Return once the topic has been read for the first time. Requests that write wait for the first election."""
        settings = self._config.settings
        deadline_s = asyncio.get_running_loop().time() + settings.kafkastore_init_timeout_ms / 1000
        identity = settings.identity(self._bound)
        self._client = AsyncClient(
            self._config.bootstrap_servers,
            client_id=f"schema-registry-{identity.host}-{identity.port}",
            timeout_s=_REQUEST_TIMEOUT_S,
            security=client_security(self._config.client),
        )
        self._forwarder = self._new_forwarder(speaks_tls=identity.scheme == "https")
        self._watch_permissions()
        self._served = ServedLog(settings.kafkastore_topic, self._new_edition, self._leader_known)
        self._follower = LogFollower(self._client, settings.kafkastore_topic, self._served)
        self._leadership = GroupLeadership(
            self._client,
            self._follower,
            settings.group_terms,
            identity,
            topic=settings.kafkastore_topic,
            noop=noop_record(),
            timeout_s=settings.kafkastore_timeout_ms / 1000,
        )
        await self._prepare_topic(self._client, deadline_s)
        await self._replay(self._follower, self._served, deadline_s)
        self._leadership.elector.start()

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        if self._leadership is not None:
            await self._leadership.stop()
        if self._follower is not None:
            await self._follower.stop()
        if self._served is not None:
            self._served.close()
        if self._forwarder is not None:
            await self._forwarder.close()
        if self._client is not None:
            await self._client.close()

    # --- Helpers ------------------------------------------------------------------------------------------------------

    async def _prepare_topic(self, client: AsyncClient, deadline_s: float) -> None:
        """Create or check the topic, retrying until the brokers allow it."""
        settings = self._config.settings
        clock_s = asyncio.get_running_loop().time
        reported_s = float("-inf")
        while True:
            try:
                metadata = await client.refresh_metadata([])
                self._cluster_id = metadata.cluster_id or ""
                await ensure_topic(client, settings.topic_terms)
                return
            except UnusableTopic as problem:
                raise RegistryNotStarted(str(problem)) from None
            except (OSError, Refused) as problem:
                now_s = clock_s()
                if now_s >= deadline_s:
                    raise RegistryNotStarted(
                        f"the brokers {self._config.bootstrap_servers} could not be used within "
                        f"kafkastore.init.timeout.ms={settings.kafkastore_init_timeout_ms}: {problem}"
                    ) from None
                if now_s >= reported_s + _REPORT_EVERY_S:
                    reported_s = now_s
                    log.warning("waiting for the brokers", brokers=self._config.bootstrap_servers, why=problem)
                await asyncio.sleep(_RETRY_S)

    async def _replay(self, follower: LogFollower, served: ServedLog, deadline_s: float) -> None:
        """Read the topic up to its end."""
        follower.start()
        try:
            async with asyncio.timeout_at(deadline_s):
                await served.first_replay.wait()
        except TimeoutError:
            settings = self._config.settings
            raise RegistryNotStarted(
                f"the topic {settings.kafkastore_topic} was not read within kafkastore.init.timeout.ms="
                f"{settings.kafkastore_init_timeout_ms}: {follower.problem or 'the replay is taking too long'}"
            ) from None

    def _new_edition(self, state: State, is_current: Callable[[], bool]) -> Edition:
        assert self._follower is not None
        assert self._leadership is not None
        settings = self._config.settings
        schema_log = KafkaSchemaLog(
            self._follower, self._leadership.writer, is_current, timeout_s=settings.kafkastore_timeout_ms / 1000
        )
        service = RegistryService(state, schema_log, self._leadership, settings.options(self._cluster_id))
        app = make_app(service, forwarder=self._forwarder, authorizer=self._permissions)
        return Edition(state, service, app)

    def _new_forwarder(self, *, speaks_tls: bool) -> HttpForwarder:
        settings = self._config.settings
        return HttpForwarder(
            connect_timeout_s=settings.leader_connect_timeout_ms / 1000,
            read_timeout_s=settings.leader_read_timeout_ms / 1000,
            also_forwarded=settings.inter_instance_headers_whitelist,
            tls=client_context(settings.texts("ssl.")) if speaks_tls else None,
        )

    def _watch_permissions(self) -> None:
        """Raises InvalidSetting."""
        if file := self._config.settings.kaspar_registry_authorization_file:
            self._permissions = PermissionsFile(Path(file))
            self._start(_reload(Reloader(self._permissions)))

    async def _leader_known(self) -> None:
        assert self._leadership is not None
        settings = self._config.settings
        await self._leadership.leader_known(
            first_within_s=settings.kafkastore_init_timeout_ms / 1000,
            next_within_s=settings.kafkastore_timeout_ms / 1000,
        )

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.get_running_loop().create_task(work))


async def _reload(reloader: Reloader) -> None:
    while True:
        await asyncio.sleep(_RELOAD_EVERY_S)
        reloader.reload_changed()
