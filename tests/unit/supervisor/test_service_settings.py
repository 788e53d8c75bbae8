"""The settings files of services: every name in them is known to the service, and callers' rights reach the brokers."""

from pathlib import Path

import pytest

from kaspar.services.making import make_services, warnings_about
from kaspar.supervisor.folder import Folder
from kaspar.supervisor.plan import BrokerPlan, ClusterPlan, ServicePlan
from kaspar.supervisor.security import passwords, write_security
from kaspar.supervisor.service_settings import service_settings
from kaspar.web.catalogue import SERVICES

ALL = tuple(ServicePlan(service.name, service.port) for service in SERVICES.values())
PLAIN = ClusterPlan((BrokerPlan(1, 9092, 9404), BrokerPlan(2, 9093, 9405)), services=ALL)
SECURED = ClusterPlan((BrokerPlan(1, 9092, 9404, 9500),), services=ALL)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path / "c1")
    folder.path.mkdir()
    write_security(folder, SECURED)
    return folder


def settings_of(folder: Folder, plan: ClusterPlan, name: str) -> dict[str, str]:
    (service,) = [each for each in plan.services if each.name == name]
    return service_settings(folder, plan, service, Path("/pipelines"))


@pytest.mark.parametrize("plan", [PLAIN, SECURED], ids=["plain", "secured"])
@pytest.mark.parametrize("name", SERVICES)
def test_service_takes_all_of_its_settings(folder: Folder, plan: ClusterPlan, name: str) -> None:
    values = settings_of(folder, plan, name)
    (service,) = make_services({name: values})
    assert warnings_about(service, values) == []


@pytest.mark.parametrize("name", SERVICES)
def test_secured_service_is_served_by_https_to_the_users_of_the_folder(folder: Folder, name: str) -> None:
    values = settings_of(folder, SECURED, name)
    assert values["listeners"] == f"https://127.0.0.1:{SERVICES[name].port}"
    assert values["authentication.method"] == "BASIC"
    users = Path(values["kaspar.http.credentials.file"]).read_text()
    assert users == "".join(f"{user}:{password}\n" for user, password in passwords(folder).items())


@pytest.mark.parametrize("name", ["rest", "monitor", "console"])
def test_caller_reaches_the_brokers_of_a_secured_cluster_as_itself(folder: Folder, name: str) -> None:
    assert settings_of(folder, SECURED, name)["kaspar.propagate.identity"] == "true"
    assert "kaspar.propagate.identity" not in settings_of(folder, PLAIN, name)


@pytest.mark.parametrize("name", ["monitor", "console"])
def test_metrics_pages_of_all_brokers_are_known(folder: Folder, name: str) -> None:
    pages = settings_of(folder, PLAIN, name)["kaspar.metrics.urls"]
    assert pages == "1=http://127.0.0.1:9404/metrics,2=http://127.0.0.1:9405/metrics"


def test_services_without_a_registry_do_not_look_for_one(folder: Folder) -> None:
    alone = ClusterPlan(PLAIN.brokers, services=tuple(each for each in ALL if each.name != "registry"))
    for name in ("rest", "console"):
        assert "schema.registry.url" not in settings_of(folder, alone, name)
        assert settings_of(folder, PLAIN, name)["schema.registry.url"] == "http://127.0.0.1:8081"


def test_console_shows_the_pipelines_of_the_folder_and_writes_its_audit_log_beside_its_settings(folder: Folder) -> None:
    values = settings_of(folder, PLAIN, "console")
    assert values["kaspar.console.pipelines.folder"] == "/pipelines"
    assert Path(values["kaspar.console.audit.file"]).parent == folder.services
