"""The REST proxy as a service that a host starts, serves and stops (kaspar.web.hosting)."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import quote, unquote, unquote_to_bytes

from starlette.convertors import Convertor
from starlette.exceptions import HTTPException
from starlette.routing import Route, Router

from kaspar.base.clock import Clock, SystemClock
from kaspar.callers.clients import KafkaClients
from kaspar.callers.identities import SERVICE
from kaspar.rest.administration import Administration
from kaspar.rest.cluster import KnownCluster
from kaspar.rest.consuming.instances import ConsumerInstances
from kaspar.rest.context import RestContext
from kaspar.rest.errors import METHOD_NOT_ALLOWED, NOT_FOUND
from kaspar.rest.formats.by_schema import SchemaFormats
from kaspar.rest.http import BodyBudget, Links, error_response
from kaspar.rest.producing import Producers
from kaspar.rest.settings import RestConfig, RestSettings
from kaspar.rest.topics import KnownTopics
from kaspar.rest.v2.routes import v2_routes
from kaspar.rest.v3.routes import v3_routes
from kaspar.serialization.registry_client import RegistryClient
from kaspar.serialization.registry_config import registry_config
from kaspar.serialization.subject_names import DEFAULT, strategy
from kaspar.web.asgi import App, Receive, Scope, Send
from kaspar.web.errors import ErrorForm, json_error
from kaspar.web.turns import Turns

_REGISTRY_DEFAULTS: Final = {"http.connect.timeout.ms": "5000", "http.read.timeout.ms": "10000", "max.retries": "1"}
"""Shorter than the registry client's own defaults, because a REST client waits for its response meanwhile."""


class RestServer:
    """`values` are settings as texts, with Confluent's names. Raises InvalidSetting with a sentence."""

    def __init__(self, values: Mapping[str, str], *, clock: Clock | None = None) -> None:
        self._config = RestConfig.of(values)
        self._clients = KafkaClients(
            self._config, client_id="kaspar-rest", propagate=self._config.settings.kaspar_propagate_identity
        )
        self._registry = registry_config({**_REGISTRY_DEFAULTS, **self._config.registry})
        self._strategies = {
            kind: strategy(self._config.producer.get(f"{kind}.subject.name.strategy", DEFAULT))
            for kind in ("key", "value")
        }
        self._clock = clock or SystemClock()
        self._context: RestContext | None = None
        self._app: App | None = None
        self.listeners: tuple[str, ...] = self._config.settings.listeners

    @property
    def name(self) -> str:
        return "rest"

    @property
    def settings(self) -> RestSettings:
        return self._config.settings

    @property
    def error_form(self) -> ErrorForm:
        return json_error

    @property
    def app(self) -> App:
        assert self._app is not None, "the proxy is not running"
        return self._app

    def bound(self, listeners: Sequence[str]) -> None:
        self.listeners = tuple(listeners)

    async def start(self) -> None:
        """Needs no broker; requests wait for one."""
        settings = self._config.settings
        administration = Administration(self._clients, identities=settings.kaspar_identity_clients)
        topics = KnownTopics(administration, self._clock)
        self._context = RestContext(
            self._config,
            administration,
            KnownCluster(administration),
            topics,
            Producers(
                self._clients,
                topics,
                identities=settings.kaspar_identity_clients,
                max_waiting=settings.kaspar_producer_waiting_requests,
            ),
            BodyBudget(settings.kaspar_producer_request_bytes),
            SchemaFormats(
                RegistryClient(self._registry),
                key_strategy=self._strategies["key"],
                value_strategy=self._strategies["value"],
            ),
            ConsumerInstances(settings, self._clients, administration, self._clock),
            Links(settings),
            Turns(),
        )
        await self._context.consumers.start()
        if not settings.kaspar_propagate_identity:
            self._context.producers.prepare(SERVICE)
        self._app = make_app(self._context)

    async def stop(self) -> None:
        context, self._context = self._context, None
        if context is not None:
            await asyncio.gather(context.consumers.close(), context.producers.close(), context.schemas.close())
            await context.topics.close()
            await context.administration.close()


def make_app(context: RestContext) -> App:
    routes: list[Route] = []
    if context.config.settings.api_v2_enable:
        routes += v2_routes(context)
    if context.config.settings.api_v3_enable:
        routes += v3_routes(context)
    for route in routes:
        route.param_convertors = dict.fromkeys(route.param_convertors, _NAME)
    return _Application(Router(routes, redirect_slashes=False))


class _Name(Convertor[str]):
    """A name in a path, in the form that `_routed_path` produces."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        return unquote(value) if "%" in value else value

    def to_string(self, value: str) -> str:
        return quote(value, safe="")


_NAME: Final = _Name()


def _routed_path(scope: Scope) -> str:
    """The path that is matched with routes. Names may contain slashes, as those of groups do, so slashes and percent
    signs within a name stay quoted."""
    raw: bytes = scope.get("raw_path") or b""
    if b"%" not in raw:
        path: str = scope["path"]
        return path
    names = (unquote_to_bytes(name).decode("utf-8", "replace") for name in raw.partition(b"?")[0].split(b"/"))
    return "/".join(name.replace("%", "%25").replace("/", "%2F") for name in names)


class _Application:
    """Finds the endpoint of a request. Exceptions of endpoints are not caught: the web server reports them as bugs."""

    def __init__(self, router: Router) -> None:
        self._router = router

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = _routed_path(scope)
        if len(path) > 1 and path.endswith("/"):  # `/topics/` is the same as `/topics`, as in Confluent's proxy
            path = path.rstrip("/") or "/"
        # With "app" in the scope, the router raises HTTPException if no route matches. The scope is not copied, because
        # endpoints use it to tell the web server that their requests are streams.
        scope.update(path=path, app=self)
        try:
            await self._router(scope, receive, send)
        except HTTPException as problem:
            kind = METHOD_NOT_ALLOWED if problem.status_code == METHOD_NOT_ALLOWED.status else NOT_FOUND
            response = error_response(kind, kind.text)
            response.headers.update(problem.headers or {})
            await response(scope, receive, send)
