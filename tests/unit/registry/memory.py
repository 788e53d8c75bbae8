"""A registry in memory, for tests: a log that is a list, and HTTP without a socket."""

import asyncio
import json
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import httpx

from kaspar.registry.api import make_app
from kaspar.registry.authorization import Authorizer
from kaspar.registry.interfaces import (
    ForwardedRequest,
    ForwardedResponse,
    ForwardingFailed,
    LogRecord,
    NotLeader,
)
from kaspar.registry.options import RegistryOptions
from kaspar.registry.service import RegistryService
from kaspar.registry.state import State


class MemoryLog:
    def __init__(self, state: State) -> None:
        self.state = state
        self.records: list[LogRecord] = []
        self.failure: Exception | None = None

    async def append(self, records: Sequence[LogRecord]) -> None:
        # Requests that come in meanwhile wait, and are decided on what this leaves behind.
        await asyncio.sleep(0)
        if self.failure is not None:
            raise self.failure
        for key, value in records:
            self.state.replay(key, value, len(self.records), 1_000 + len(self.records))
            self.records.append((key, value))

    async def catch_up(self) -> None:
        if self.failure is not None:
            raise self.failure


class FixedLeadership:
    def __init__(self, *, is_leader: bool = True, leader_url: str | None = None) -> None:
        self.is_leader = is_leader
        self.leader_url = leader_url

    async def ready(self) -> None:
        if not self.is_leader:
            raise NotLeader("not the leader")


class DirectForwarder:
    """To another registry of the same test."""

    def __init__(self, leader: "MemoryRegistry | None") -> None:
        self._leader = leader
        self.requests: list[ForwardedRequest] = []

    async def forward(self, leader_url: str, request: ForwardedRequest) -> ForwardedResponse:
        self.requests.append(request)
        if self._leader is None:
            raise ForwardingFailed("no route")
        response = await self._leader.http.request(
            request.method, request.target, headers={**request.headers, "X-Forward": "false"}, content=request.body
        )
        return ForwardedResponse(response.status_code, dict(response.headers), response.content)


class Response:
    def __init__(self, response: httpx.Response) -> None:
        self.status = response.status_code
        self.text = response.text
        self.headers = response.headers

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def error(self) -> tuple[int, int, str]:
        """HTTP status, error code, message."""
        return self.status, self.json["error_code"], self.json["message"]


class MemoryRegistry:
    """Requests from synchronous tests. It is its own leader, unless told otherwise."""

    def __init__(
        self,
        *,
        options: RegistryOptions | None = None,
        leadership: FixedLeadership | None = None,
        forwarder: DirectForwarder | None = None,
        authorizer: Authorizer | None = None,
        runner: "asyncio.Runner | None" = None,
    ) -> None:
        self.state = State()
        self.log = MemoryLog(self.state)
        self.service = RegistryService(
            self.state, self.log, leadership or FixedLeadership(), options or RegistryOptions()
        )
        self.app = make_app(self.service, forwarder=forwarder, authorizer=authorizer)
        self._app: Any = self.app
        self.http = httpx.AsyncClient(
            transport=httpx.ASGITransport(self._app, raise_app_exceptions=True), base_url="http://registry"
        )
        self.runner = runner or asyncio.Runner()
        self._owns_runner = runner is None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.runner.run(self.http.aclose())
        self.service.close()
        if self._owns_runner:
            self.runner.close()

    def request(
        self,
        method: str,
        target: str,
        body: Any = None,
        *,
        headers: dict[str, str] | None = None,
        content: bytes | None = None,
    ) -> Response:
        if body is not None:
            content = json.dumps(body).encode()
        return Response(self.runner.run(self.http.request(method, target, content=content, headers=headers)))

    def get(self, target: str) -> Any:
        response = self.request("GET", target)
        assert response.status == 200, response.text
        return response.json

    def register(self, subject: str, schema: Any, **fields: Any) -> Any:
        """The response to registering; `schema` is text, or Avro as Python values."""
        response = self.try_register(subject, schema, **fields)
        assert response.status == 200, response.text
        return response.json

    def try_register(self, subject: str, schema: Any, **fields: Any) -> Response:
        text = schema if isinstance(schema, str) else json.dumps(schema)
        return self.request("POST", f"/subjects/{subject}/versions", {"schema": text, **fields})


def avro_record(*fields: str, optional: Sequence[str] = (), name: str = "Order") -> dict[str, Any]:
    """A record of strings; those of `optional` have a default."""
    return {
        "type": "record",
        "name": name,
        "fields": [
            *({"name": field, "type": "string"} for field in fields),
            *({"name": field, "type": "string", "default": ""} for field in optional),
        ],
    }
