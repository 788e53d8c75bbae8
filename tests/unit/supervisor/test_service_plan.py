"""Which services a cluster on one machine has, and on which ports."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kaspar.base.errors import KasparError
from kaspar.supervisor.folder import Folder
from kaspar.supervisor.plan import BrokerPlan, ClusterPlan, ServicePlan, Size, plan_of
from kaspar.supervisor.service_plan import ServiceWishes, plan_services
from kaspar.web.catalogue import SERVICES

ALL = ("registry", "rest")
SIZE = Size(1, 9092, 0)


def free_ports(wanted: list[int]) -> Iterator[int]:
    yield from wanted
    yield from range(20_000, 20_100)


def planned(
    wishes: ServiceWishes | None = None, earlier: ClusterPlan | None = None, available: tuple[str, ...] = ALL
) -> ClusterPlan:
    wishes = wishes or ServiceWishes()
    wishes.check()
    services = plan_services(wishes, SIZE, earlier, available, free_ports)
    return plan_of(SIZE, earlier, free_ports, services=services, left_out=wishes.left_out(earlier))


def ports(plan: ClusterPlan) -> dict[str, int]:
    return {service.name: service.port for service in plan.services}


def test_all_run_on_the_ports_that_people_know() -> None:
    everything = {"registry": 8081, "rest": 8082, "monitor": 8000, "console": 8080}
    assert ports(planned(available=tuple(SERVICES))) == everything


def test_urls_are_on_the_loopback_address() -> None:
    assert planned().service_urls == {"registry": "http://127.0.0.1:8081", "rest": "http://127.0.0.1:8082"}


def test_ports_are_kept() -> None:
    first = planned(ServiceWishes({"registry": 18081}))
    assert ports(first) == {"registry": 18081, "rest": 8082}
    assert ports(planned(earlier=first)) == ports(first)
    assert ports(planned(ServiceWishes({"registry": 28081}), first)) == {"registry": 28081, "rest": 8082}


def test_any_free_port_stays_while_it_is_free() -> None:
    first = planned(ServiceWishes({"registry": 0, "rest": 0}))
    assert ports(first) == {"registry": 20_000, "rest": 20_001}
    assert ports(planned(earlier=first)) == ports(first)


def test_default_that_is_taken_gives_way_to_any_free_port() -> None:
    def without_8081(wanted: list[int]) -> Iterator[int]:
        yield from (port for port in wanted if port != 8081)
        yield from range(20_000, 20_100)

    services = plan_services(ServiceWishes(), SIZE, None, ALL, without_8081)
    assert services == (ServicePlan("registry", 20_000, any_port=True), ServicePlan("rest", 8082))
    assert ports(planned(earlier=ClusterPlan((), services=services))) == {"registry": 20_000, "rest": 8082}
    beside = planned(ServiceWishes({"registry": 8082}))
    assert ports(beside) == {"registry": 8082, "rest": 20_000}


def test_what_is_left_out_stays_out_until_it_is_asked_for() -> None:
    without = planned(ServiceWishes(without=["rest"]))
    assert ports(without) == {"registry": 8081}
    assert ports(planned(earlier=without)) == {"registry": 8081}
    assert ports(planned(ServiceWishes({"rest": 8082}), without)) == {"registry": 8081, "rest": 8082}
    assert ports(planned(ServiceWishes(only=["registry", "rest"]), without)) == {"registry": 8081, "rest": 8082}
    assert ports(planned(ServiceWishes(only=["rest"]), without)) == {"rest": 8082}
    assert ports(planned(ServiceWishes(only=[]), without)) == {}


def test_what_was_not_installed_runs_once_it_is() -> None:
    first = planned(available=("registry",))
    assert ports(first) == {"registry": 8081}
    assert ports(planned(earlier=first)) == {"registry": 8081, "rest": 8082}


def test_folder_of_a_cluster_that_had_no_services_gets_them(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text(
        '{"brokers": [{"id": 1, "port": 9092, "metrics_port": 9404, "inside_port": null}], "zookeepers": []}'
    )
    earlier = Folder(tmp_path).plan()
    assert earlier == ClusterPlan((BrokerPlan(1, 9092, 9404),))
    assert ports(planned(earlier=earlier)) == {"registry": 8081, "rest": 8082}


def test_process_file_of_a_supervisor_that_knew_no_services_is_read(tmp_path: Path) -> None:
    (tmp_path / "supervisor.json").write_text(
        '{"supervisor": {"pid": 1, "start_ticks": 2}, "brokers": {}, "zookeepers": {}}'
    )
    running = Folder(tmp_path).running()
    assert running is not None
    assert running.processes() == []


@pytest.mark.parametrize(
    ("wishes", "sentence"),
    [
        (ServiceWishes({"registry": 9092}), "the schema registry cannot use port 9092, which broker 1 uses"),
        (ServiceWishes({"registry": 8082, "rest": 8082}), "the REST proxy cannot use port 8082, which the schema"),
        (ServiceWishes({"rest": -1}), "the port must be between 0 and 65535"),
        (ServiceWishes(without=["kafka"]), "there is no service 'kafka'"),
        (ServiceWishes({"rest": 0}, only=["registry"]), "--rest-port is given, but the service is disabled"),
    ],
)
def test_wishes_that_cannot_be_met_are_refused(wishes: ServiceWishes, sentence: str) -> None:
    with pytest.raises(KasparError, match=sentence):
        planned(wishes)


def test_plan_is_read_as_it_was_written(tmp_path: Path) -> None:
    plan = planned(ServiceWishes({"registry": 0}, without=["rest"]))
    assert plan.services == (ServicePlan("registry", 20_000, any_port=True),)
    Folder(tmp_path).write_plan(plan)
    assert Folder(tmp_path).plan() == plan
