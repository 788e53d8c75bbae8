"""The declaration of an endpoint of version 3, and the request that its handler gets.

A declaration defines the route and its part of the OpenAPI description.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from kaspar.callers.identities import Identity
from kaspar.client.admin.cluster import ClusterDescription, describe_cluster
from kaspar.client.admin.session import Admin
from kaspar.rest.context import RestContext
from kaspar.rest.errors import INVALID_PAYLOAD, NOT_ACCEPTABLE, UNSUPPORTED_MEDIA_TYPE, RestError
from kaspar.rest.http import JSON, decode_body, json_response, no_content
from kaspar.rest.v3.errors import NO_BODY, missing
from kaspar.rest.v3.names import ResourceNames
from kaspar.rest.v3.resources import ErrorBody
from kaspar.web.media_types import accepted_ranges, media_type_name
from kaspar.web.openapi import Operation, Parameter, ResponseSpec

_MAX_INT: Final = (1 << 31) - 1
_ACCEPTED: Final = frozenset({JSON, "application/*", "*/*"})
_NUMBERS: Final = frozenset({"broker_id", "partition_id"})
_ERRORS: Final = {
    "400": ResponseSpec("400: the request is malformed. 40002: the broker rejected it.", ErrorBody),
    "401": ResponseSpec("40101: the broker rejected the credentials.", ErrorBody),
    "403": ResponseSpec("40301: the broker does not allow it.", ErrorBody),
    "404": ResponseSpec(
        "404: the resource does not exist. 40402, 40403: the topic or partition does not exist.", ErrorBody
    ),
    "429": ResponseSpec("42901: too many requests.", ErrorBody),
    "5XX": ResponseSpec("50002: the broker failed. 50003: it may succeed later.", ErrorBody),
}

_Body = TypeVar("_Body")
_Result = TypeVar("_Result")


class Call:
    """A request to an endpoint."""

    def __init__(self, context: RestContext, request: Request) -> None:
        """Raises RestError."""
        self.context = context
        self.request = request
        self.path: Mapping[str, str] = request.path_params
        self.identity: Identity = context.identity(request)

    @property
    def cluster_id(self) -> str:
        return self.path["cluster_id"]

    @property
    def topic(self) -> str:
        return self.path["topic_name"]

    def number(self, name: str) -> int:
        """A number in the path. A path with anything but a number does not exist."""
        text = self.path[name]
        if not (text.isascii() and text.isdecimal() and len(text) <= 10 and int(text) <= _MAX_INT):
            raise missing()
        return int(text)

    def text(self, name: str, default: str = "") -> str:
        """A query parameter."""
        return self.request.query_params.get(name, default)

    def flag(self, name: str) -> bool:
        return self.text(name).lower() == "true"

    def names(self, cluster_id: str | None = None) -> ResourceNames:
        """The names of resources of this cluster, or else of the cluster in the path."""
        base = self.context.links.to(self.request, "")
        authority = self.context.config.settings.confluent_resource_name_authority.strip("/")
        return ResourceNames(base, authority, self.cluster_id if cluster_id is None else cluster_id)

    async def body(self, decoder: msgspec.json.Decoder[_Body]) -> _Body:
        """Raises RestError."""
        return decoded(decoder, await self.request.body())

    async def ask(self, function: Callable[[Admin], _Result]) -> _Result:
        """Call the function in a thread and return its result, if the cluster in the path is the one that the session
        is connected to. Raises RestError."""
        return await self.ask_cluster(lambda admin, cluster: function(admin))

    async def ask_cluster(self, function: Callable[[Admin, ClusterDescription], _Result]) -> _Result:
        cluster_id = self.cluster_id

        def ask(admin: Admin) -> _Result:
            cluster = describe_cluster(admin)
            if cluster.cluster_id != cluster_id:
                raise no_cluster(cluster_id)
            return function(admin, cluster)

        return await self.context.administration.call(self.identity, ask)


def decoded(decoder: msgspec.json.Decoder[_Body], body: bytes) -> _Body:
    """Raises RestError."""
    if not body.strip() or body.strip() == b"null":
        raise RestError(INVALID_PAYLOAD, NO_BODY)
    return decode_body(decoder, body)


def no_cluster(cluster_id: str) -> RestError:
    return missing(f"Cluster {cluster_id} cannot be found.")


class NoContent:
    """An empty response."""


Handler: TypeAlias = Callable[[Call], Awaitable[Any]]
"""Returns an object to send as JSON, NoContent, or a complete Response."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    method: str
    path: str
    handler: Handler
    summary: str
    tag: str
    response: Any = None
    """The type of the JSON; None if the response is empty."""
    status: int = 200
    body: Any = None
    parameters: tuple[Parameter, ...] = ()
    more_responses: tuple[tuple[str, ResponseSpec], ...] = ()

    @property
    def operation(self) -> Operation:
        return Operation(
            self.method,
            self.path,
            self.summary,
            self.tag,
            {str(self.status): ResponseSpec(self.summary, self.response), **dict(self.more_responses), **_ERRORS},
            self.parameters,
            _NUMBERS,
            self.body,
        )

    async def respond(self, context: RestContext, request: Request) -> Response:
        """Raises RestError."""
        check_accepted(request.headers.get("accept"))
        if self.body is not None:
            check_body_type(request.headers.get("content-type"))
        result = await self.handler(Call(context, request))
        if isinstance(result, Response):
            return result
        if result is NoContent:
            return no_content()
        return json_response(result, status=self.status)


def check_accepted(accept: str | None) -> None:
    """Raises RestError (406) if the client does not accept JSON."""
    if not any(each.name in _ACCEPTED and each.weight > 0 for each in accepted_ranges(accept)):
        raise RestError(NOT_ACCEPTABLE)


def check_body_type(content_type: str | None) -> None:
    """A body without a type is assumed to be JSON. Raises RestError (415)."""
    if content_type and media_type_name(content_type) != JSON:
        raise RestError(UNSUPPORTED_MEDIA_TYPE)
