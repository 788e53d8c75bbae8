"""Kaspar's own API, /v1, for everything that Burrow's API does not cover."""

import asyncio
from dataclasses import fields, is_dataclass
from enum import Enum, StrEnum
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from kaspar.base.ids import TopicPartition
from kaspar.monitor.core import Monitor
from kaspar.monitor.http.responses import JSON, encode

_HOUR_MS = 3_600_000
_DIGITS = 10
"""The maximum number of digits of a broker id."""


def own_routes(monitor: Monitor) -> list[Route]:
    api = OwnApi(monitor)
    endpoints = {
        "/v1/cluster": api.cluster,
        "/v1/groups": api.groups,
        "/v1/groups/{group}": api.group,
        "/v1/groups/{group}/history": api.history,
        "/v1/rates": api.rates,
        "/v1/canary": api.canary,
        "/v1/findings": api.findings,
    }
    return [Route(path, endpoint, methods=["GET"]) for path, endpoint in endpoints.items()]


class OwnApi:
    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor

    async def cluster(self, request: Request) -> Response:
        monitor = self._monitor
        return await _json(
            {
                "cluster": monitor.cluster,
                "problem": monitor.cluster_problem,
                "last_round": monitor.lag.last_round,
                "metrics_pages": monitor.page_problems,
            }
        )

    async def groups(self, request: Request) -> Response:
        """All groups, without their partitions."""
        return await _json(
            [
                {
                    "group": each.group,
                    "status": each.status.name,
                    "total_lag": each.total_lag,
                    "max_lag_seconds": each.max_lag_seconds,
                    "complete": each.complete,
                    "state": each.state,
                    "type": each.kind,
                    "is_stale": each.is_stale,
                    "at_ms": each.at_ms,
                }
                for each in self._monitor.lag.groups().values()
            ]
        )

    async def group(self, request: Request) -> Response:
        group = self._monitor.lag.group(request.path_params["group"])
        return _not_found("no such group has committed offsets") if group is None else await _json(group)

    async def history(self, request: Request) -> Response:
        name = request.path_params["group"]
        if self._monitor.lag.group(name) is None:
            return _not_found("no such group has committed offsets")
        return await _json(self._monitor.lag.history(name, self._since_ms(request)))

    async def rates(self, request: Request) -> Response:
        """The series of the cluster, or of one broker with `?broker=ID`, since `?since_ms=`."""
        rates = self._monitor.rates
        broker = request.query_params.get("broker")
        if broker is not None and not (broker.isascii() and broker.isdecimal() and len(broker) <= _DIGITS):
            return _problem(400, "broker must be a number")
        since_ms = self._since_ms(request)
        number = None if broker is None else int(broker)
        return await _json(
            {
                name: [[point.at_ms, point.value] for point in points]
                for name in rates.names
                if (points := rates.series(name, since_ms, number))
            }
        )

    async def canary(self, request: Request) -> Response:
        report = self._monitor.canary
        return _not_found("the canary is not enabled (canary.enable)") if report is None else await _json(report)

    async def findings(self, request: Request) -> Response:
        return await _json(self._monitor.findings)

    def _since_ms(self, request: Request) -> int:
        text = request.query_params.get("since_ms", "")
        return int(text) if text.isdecimal() and len(text) < 19 else self._monitor.clock.now_ms() - _HOUR_MS


async def _json(content: object) -> Response:
    """Encodes in a thread, because a group may have thousands of partitions. Views are immutable, so this is safe."""
    return Response(await asyncio.to_thread(lambda: encode(_plain(content))), media_type=JSON)


def _not_found(message: str) -> Response:
    return _problem(404, message)


def _problem(status: int, message: str) -> Response:
    return Response(encode({"error": True, "message": message}), status, media_type=JSON)


def _plain(content: Any) -> Any:
    """The value in JSON types. Statuses, which are numbers internally, become their names."""
    if is_dataclass(content) and not isinstance(content, type):
        return {each.name: _plain(getattr(content, each.name)) for each in fields(content)}
    if isinstance(content, TopicPartition):
        return {"topic": content.topic, "partition": content.partition}
    if isinstance(content, Enum):
        return content.value if isinstance(content, StrEnum) else content.name
    if isinstance(content, dict):
        return {str(name): _plain(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [_plain(each) for each in content]
    return content
