"""The settings files of the HTTP services of a cluster on one machine.

In a secured cluster callers log in by HTTPS as one of its first users. The REST proxy propagates this identity, so that
a caller has the user's permissions on the brokers. The registry itself logs in as `client`. The monitor, which observes
everything, logs in as `admin`, and shows its observations to callers that may describe the cluster. The console
propagates the caller's identity, too; it uses `admin` only for observations, and only if no monitor runs beside it.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from kaspar.supervisor.client_settings import Access
from kaspar.supervisor.folder import Folder
from kaspar.supervisor.plan import HOST, ClusterPlan, ServicePlan
from kaspar.supervisor.security import (
    ADMIN,
    CLIENT,
    client_access,
    http_users_file,
    services_certificate,
    trusted_certificate,
)
from kaspar.supervisor.settings import MOST_REPLICAS

_WITHOUT_END_MS: Final = str(2**31 - 1)
"""The registry waits for its brokers forever: if it gave up, the services in the same process would end, too."""


def service_settings(
    folder: Folder, plan: ClusterPlan, service: ServicePlan, pipelines: Path | None = None
) -> dict[str, str]:
    """The settings of one service. `pipelines` is the folder of the pipelines that the console shows, if not the user's
    own.
    """
    access = {each.user: each for each in client_access(folder, plan)} if plan.is_secured else {}
    served = {"listeners": f"{'https' if plan.is_secured else 'http'}://{HOST}:{service.port}"}
    if plan.is_secured:
        served |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(services_certificate(folder)),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(trusted_certificate(folder)),
            "authentication.method": "BASIC",
            "kaspar.http.credentials.file": str(http_users_file(folder)),
        }
    user, own_settings = _SETTINGS[service.name]
    values = served | own_settings(plan, access.get(user))
    if service.name == "console":
        values["kaspar.console.audit.file"] = str(folder.services / "console-audit.log")
        values |= {} if pipelines is None else {"kaspar.console.pipelines.folder": str(pipelines)}
    return values


def _registry(plan: ClusterPlan, access: Access | None) -> dict[str, str]:
    values = {
        "kafkastore.bootstrap.servers": plan.bootstrap_servers,
        "kafkastore.topic.replication.factor": str(min(MOST_REPLICAS, len(plan.brokers))),
        "kafkastore.init.timeout.ms": _WITHOUT_END_MS,
    }
    if access is not None:
        values |= _prefixed("kafkastore.", access.java) | {"inter.instance.protocol": "https"}
    return values


def _rest(plan: ClusterPlan, access: Access | None) -> dict[str, str]:
    values = {"bootstrap.servers": plan.bootstrap_servers} | _of_the_registry(plan, access)
    if access is not None:
        values |= _prefixed("client.", access.java) | {"kaspar.propagate.identity": "true"}
    return values


def _of_the_registry(plan: ClusterPlan, access: Access | None) -> dict[str, str]:
    """The registry's URL and how clients log in to it; empty if there is no registry."""
    url = plan.service_urls.get("registry")
    if url is None:
        return {}
    if access is None:
        return {"schema.registry.url": url}
    return {
        "schema.registry.url": url,
        "schema.registry.basic.auth.credentials.source": "USER_INFO",
        "schema.registry.basic.auth.user.info": f"{access.user}:{access.password}",
        "schema.registry.ssl.truststore.type": "PEM",
        "schema.registry.ssl.truststore.location": str(access.trusted),
    }


def _monitor(plan: ClusterPlan, access: Access | None) -> dict[str, str]:
    pages = ",".join(f"{broker.id}=http://{broker.metrics_address}/metrics" for broker in plan.brokers)
    values = {"bootstrap.servers": plan.bootstrap_servers, "kaspar.metrics.urls": pages, "canary.enable": "true"}
    if access is not None:
        values |= _prefixed("client.", access.java) | {"kaspar.propagate.identity": "true"}
    return values


def _console(plan: ClusterPlan, access: Access | None) -> dict[str, str]:
    return _rest(plan, access) | _monitor(plan, access)


def _prefixed(prefix: str, properties: Mapping[str, str]) -> dict[str, str]:
    return {f"{prefix}{name}": value for name, value in properties.items() if name != "bootstrap.servers"}


_SETTINGS: Final[Mapping[str, tuple[str, Callable[[ClusterPlan, Access | None], dict[str, str]]]]] = {
    "registry": (CLIENT, _registry),
    "rest": (CLIENT, _rest),
    "monitor": (ADMIN, _monitor),
    "console": (ADMIN, _console),
}
"""For each service, the user that it logs in as in a secured cluster, and its own settings."""
