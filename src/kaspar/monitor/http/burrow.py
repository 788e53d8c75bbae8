"""Burrow's HTTP API, version 3, for the watched cluster: what BurrowUI, burrow_exporter and Telegraf read.

As in Burrow, lags are relative to the high watermark; but statuses are judged by the last stable offset.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from kaspar.monitor.core import Monitor
from kaspar.monitor.http.responses import burrow_refusal, burrow_response
from kaspar.monitor.settings import MonitorSettings
from kaspar.monitor.views import Commit, GroupLag, Owner, PartitionLag, Status

Endpoint = Callable[[Request], Awaitable[Response]]

_CLUSTER = "/v3/kafka/{cluster}"
_GROUP = f"{_CLUSTER}/consumer/{{group}}"
_NO_CLUSTER = "cluster not found"


def burrow_routes(monitor: Monitor) -> list[Route]:
    api = BurrowApi(monitor)
    endpoints: dict[str, Endpoint] = {
        "/burrow/admin": api.healthy,
        "/burrow/admin/ready": api.ready,
        "/v3/kafka": api.clusters,
        _CLUSTER: api.cluster,
        f"{_CLUSTER}/topic": api.topics,
        f"{_CLUSTER}/topic/{{topic}}": api.topic,
        f"{_CLUSTER}/topic/{{topic}}/consumers": api.consumers_of_topic,
        f"{_CLUSTER}/consumer": api.consumers,
        _GROUP: api.consumer,
        f"{_GROUP}/status": api.status,
        f"{_GROUP}/lag": api.lag,
    }
    return [
        *(Route(path, endpoint, methods=["GET"]) for path, endpoint in endpoints.items()),
        Route(_GROUP, api.forget, methods=["DELETE"]),
    ]


class BurrowApi:
    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self._cluster = monitor.config.settings.cluster_name

    # --- Service ------------------------------------------------------------------------------------------------------

    async def healthy(self, request: Request) -> Response:
        return PlainTextResponse("GOOD")

    async def ready(self, request: Request) -> Response:
        """Ready once a round has read offsets."""
        if self._monitor.lag.has_read:
            return PlainTextResponse("READY")
        return PlainTextResponse("STARTING", 503)

    # --- Cluster ------------------------------------------------------------------------------------------------------

    async def clusters(self, request: Request) -> Response:
        return burrow_response(request, "cluster list returned", clusters=[self._cluster])

    async def cluster(self, request: Request) -> Response:
        if not self._is_known(request):
            return burrow_refusal(request, 404, "cluster module not found")
        return burrow_response(
            request, "cluster module detail returned", module=cluster_module(self._monitor.config.settings)
        )

    async def topics(self, request: Request) -> Response:
        if not self._is_known(request):
            return burrow_refusal(request, 404, _NO_CLUSTER)
        return burrow_response(request, "topic list returned", topics=list(self._monitor.lag.topics()))

    async def topic(self, request: Request) -> Response:
        ends = self._monitor.lag.topics().get(request.path_params["topic"])
        if ends is None or not self._is_known(request):
            return burrow_refusal(request, 404, "cluster or topic not found")
        return burrow_response(request, "topic offsets returned", offsets=[-1 if end is None else end for end in ends])

    async def consumers_of_topic(self, request: Request) -> Response:
        topic = request.path_params["topic"]
        if not self._is_known(request):
            return burrow_refusal(request, 404, _NO_CLUSTER)
        consumers = [
            group.group
            for group in self._monitor.lag.groups().values()
            if any(each.topic == topic for each in group.partitions)
        ]
        return burrow_response(request, "consumers of topic returned", consumers=consumers)

    # --- Groups -------------------------------------------------------------------------------------------------------

    async def consumers(self, request: Request) -> Response:
        if not self._is_known(request):
            return burrow_refusal(request, 404, _NO_CLUSTER)
        return burrow_response(request, "consumer list returned", consumers=list(self._monitor.lag.groups()))

    async def consumer(self, request: Request) -> Response:
        group = self._group(request)
        if group is None:
            return burrow_refusal(request, 404, "cluster or consumer not found")
        return burrow_response(request, "consumer detail returned", topics=_topics(group))

    async def status(self, request: Request) -> Response:
        """The group's status, with the partitions that are not OK."""
        return self._status(request, lambda each: each.status > Status.OK)

    async def lag(self, request: Request) -> Response:
        """The group's status, with all partitions."""
        return self._status(request, lambda each: True)

    def _status(self, request: Request, is_shown: Callable[[PartitionLag], bool]) -> Response:
        group = self._group(request)
        status: dict[str, Any] = {"cluster": request.path_params["cluster"], "group": request.path_params["group"]}
        if group is None:
            status |= {"status": Status.NOTFOUND.name, "complete": 1.0, "partitions": [], "partition_count": 0}
            return burrow_response(request, "consumer status returned", 404, status=status | _NO_LAG)
        status |= {
            "status": group.status.name,
            "complete": group.complete,
            "partitions": [_partition(each) for each in group.partitions if is_shown(each)],
            "partition_count": len(group.partitions),
            "maxlag": None if group.max_partition is None else _partition(group.max_partition),
            "totallag": group.total_lag,
        }
        return burrow_response(request, "consumer status returned", status=status)

    async def forget(self, request: Request) -> Response:
        """Remove the data collected about a group. The group itself is not affected."""
        if self._is_known(request):
            await self._monitor.remove_group(request.path_params["group"])
        return burrow_response(request, "consumer group removed")

    def _is_known(self, request: Request) -> bool:
        return bool(request.path_params["cluster"] == self._cluster)

    def _group(self, request: Request) -> GroupLag | None:
        return self._monitor.lag.group(request.path_params["group"]) if self._is_known(request) else None


_NO_LAG = {"maxlag": None, "totallag": 0}


def cluster_module(settings: MonitorSettings) -> dict[str, Any]:
    """Burrow's settings of a cluster, in seconds. The client's properties are omitted, because they may be secrets."""
    return {
        "class-name": "kafka",
        "servers": [each.strip() for each in settings.bootstrap_servers.split(",")],
        "client-profile": {"name": "", "client-id": "kaspar-monitor", "kafka-version": "", "tls": None, "sasl": None},
        "topic-refresh": settings.cluster_interval_ms // 1000,
        "offset-refresh": settings.lag_interval_ms // 1000,
    }


def _topics(group: GroupLag) -> dict[str, list[dict[str, Any]]]:
    """Partitions by their number: Burrow has an entry without offsets for a partition that has no commits."""
    topics: dict[str, list[dict[str, Any]]] = {}
    for each in group.partitions:
        entries = topics.setdefault(each.topic, [])
        entries += [_UNKNOWN] * (each.partition - len(entries))
        entries.append(
            {
                "offsets": [_commit(commit) for commit in each.commits],
                **_owner(each.owner),
                "current-lag": each.lag,
            }
        )
    return topics


_UNKNOWN: dict[str, Any] = {"offsets": [], "owner": "", "client_id": "", "current-lag": 0}


def _partition(each: PartitionLag) -> dict[str, Any]:
    return {
        "topic": each.topic,
        "partition": each.partition,
        **_owner(each.owner),
        "status": each.status.name,
        "start": _commit(each.start),
        "end": _commit(each.end),
        "current_lag": each.lag,
        "complete": each.complete,
    }


def _owner(owner: Owner | None) -> dict[str, str]:
    return {"owner": "" if owner is None else owner.host, "client_id": "" if owner is None else owner.client_id}


def _commit(commit: Commit) -> dict[str, int]:
    return {"offset": commit.offset, "timestamp": commit.at_ms, "observedAt": commit.at_ms, "lag": commit.lag}
