"""Burrow's /v3/config: those of its modules that the monitor also has."""

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from kaspar.monitor.core import Monitor
from kaspar.monitor.http.burrow import cluster_module
from kaspar.monitor.http.responses import burrow_refusal, burrow_response

_DEFAULT = "default"
"""The name of the only module of each kind, except that of the cluster, which has the cluster's name."""


def burrow_config_routes(monitor: Monitor) -> list[Route]:
    api = ConfigApi(monitor)
    return [
        Route("/v3/config", api.main, methods=["GET"]),
        Route("/v3/config/{kind}", api.modules, methods=["GET"]),
        Route("/v3/config/{kind}/{name}", api.module, methods=["GET"]),
    ]


class ConfigApi:
    def __init__(self, monitor: Monitor) -> None:
        self._settings = monitor.config.settings

    async def main(self, request: Request) -> Response:
        settings = self._settings
        return burrow_response(
            request,
            "main config returned",
            general={"pidfile": "", "stdout-logfile": "", "access-control-allow-origin": ""},
            logging={"filename": settings.kaspar_log_file, "level": settings.kaspar_log_level.lower()},
            zookeeper={"servers": [], "timeout": 0, "root-path": ""},
            httpserver={
                address: {"address": address, "tls": "", "timeout": settings.idle_timeout_ms // 1000}
                for address in settings.listeners
            },
        )

    async def modules(self, request: Request) -> Response:
        kind = request.path_params["kind"]
        modules = self._modules().get(kind)
        if modules is None:
            return burrow_refusal(request, 404, "invalid request type")
        return burrow_response(request, "module list returned", coordinator=kind, modules=list(modules))

    async def module(self, request: Request) -> Response:
        kind, name = request.path_params["kind"], request.path_params["name"]
        module = self._modules().get(kind, {}).get(name)
        if module is None:
            return burrow_refusal(request, 404, f"{kind} module not found")
        return burrow_response(request, f"{kind} module detail returned", module=module)

    def _modules(self) -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
        settings = self._settings
        cluster = cluster_module(settings)
        return {
            "storage": {
                _DEFAULT: {
                    "class-name": "inmemory",
                    "intervals": settings.lag_intervals,
                    "min-distance": settings.lag_min_distance_ms // 1000,
                    "group-allowlist": settings.lag_group_allowlist,
                    "expire-group": settings.lag_expire_group_ms // 1000,
                }
            },
            "evaluator": {
                _DEFAULT: {"class-name": "caching", "expire-cache": settings.lag_interval_ms // 1000},
            },
            "cluster": {settings.cluster_name: cluster},
            "consumer": {
                settings.cluster_name: {
                    "class-name": "kafka",
                    "cluster": settings.cluster_name,
                    "servers": cluster["servers"],
                    "group-allowlist": settings.lag_group_allowlist,
                    "client-profile": cluster["client-profile"],
                }
            },
            "notifier": {},
        }
