"""The settings files of the HTTP services of a cluster on one machine.

In a secured cluster callers log in by HTTPS as one of its first users. The REST proxy passes that on, so that a caller
may do on the brokers what the user may; the registry is itself the user `client`.
"""

from collections.abc import Mapping

from kaspar.supervisor.client_settings import Access
from kaspar.supervisor.folder import Folder
from kaspar.supervisor.plan import HOST, ClusterPlan, ServicePlan
from kaspar.supervisor.security import (
    CLIENT,
    client_access,
    http_users_file,
    services_certificate,
    trusted_certificate,
)
from kaspar.supervisor.settings import MOST_REPLICAS


def service_settings(folder: Folder, plan: ClusterPlan, service: ServicePlan) -> dict[str, str]:
    access = _client_access(folder, plan)
    served = {"listeners": f"{'http' if access is None else 'https'}://{HOST}:{service.port}"}
    if access is not None:
        served |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(services_certificate(folder)),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(trusted_certificate(folder)),
            "authentication.method": "BASIC",
            "kaspar.http.credentials.file": str(http_users_file(folder)),
        }
    own = _registry(plan, access) if service.name == "registry" else _rest(plan, access)
    return served | own


def _client_access(folder: Folder, plan: ClusterPlan) -> Access | None:
    if not plan.is_secured:
        return None
    return next(access for access in client_access(folder, plan) if access.user == CLIENT)


def _registry(plan: ClusterPlan, access: Access | None) -> dict[str, str]:
    values = {
        "kafkastore.bootstrap.servers": plan.bootstrap_servers,
        "kafkastore.topic.replication.factor": str(min(MOST_REPLICAS, len(plan.brokers))),
    }
    if access is not None:
        values |= _prefixed("kafkastore.", access.java) | {"inter.instance.protocol": "https"}
    return values


def _rest(plan: ClusterPlan, access: Access | None) -> dict[str, str]:
    values = {"bootstrap.servers": plan.bootstrap_servers}
    registry = plan.service_urls.get("registry")
    if registry is not None:
        values["schema.registry.url"] = registry
    if access is not None:
        values |= _prefixed("client.", access.java) | {"kaspar.propagate.identity": "true"}
        if registry is not None:
            values |= {
                "schema.registry.basic.auth.credentials.source": "USER_INFO",
                "schema.registry.basic.auth.user.info": f"{access.user}:{access.password}",
                "schema.registry.ssl.truststore.type": "PEM",
                "schema.registry.ssl.truststore.location": str(access.trusted),
            }
    return values


def _prefixed(prefix: str, properties: Mapping[str, str]) -> dict[str, str]:
    return {f"{prefix}{name}": value for name, value in properties.items() if name != "bootstrap.servers"}
