"""What `kaspar up` prints when everything is ready."""

from dataclasses import replace
from pathlib import Path

from kaspar.cli.up_screen import ready_lines
from kaspar.supervisor.folder import Folder
from kaspar.supervisor.plan import BrokerPlan, ClusterPlan, ServicePlan
from kaspar.web.catalogue import SERVICES

FOLDER = Folder(Path("/data/c1"))
ALL = tuple(ServicePlan(service.name, service.port) for service in SERVICES.values())
ONE = ClusterPlan((BrokerPlan(1, 9092, 9404),), services=ALL)
THREE = ClusterPlan(tuple(BrokerPlan(number, 19_091 + number, 9_403 + number) for number in (1, 2, 3)))
FIRST = "Ready after 1.5 s: one broker, bootstrap servers 127.0.0.1:9092, data in /data/c1. Ctrl-C stops."


def lines(plan: ClusterPlan, *, on_a_terminal: bool, default: str = "/data/c1") -> list[str]:
    return ready_lines(FOLDER, plan, seconds=1.46, default_folder=Path(default), on_a_terminal=on_a_terminal)


def test_other_programs_get_a_line_for_each_thing() -> None:
    assert lines(ONE, on_a_terminal=False) == [
        FIRST,
        "console http://127.0.0.1:8080",
        "schema registry http://127.0.0.1:8081",
        "REST proxy http://127.0.0.1:8082",
        "monitor http://127.0.0.1:8000",
    ]


def test_people_see_the_console_first_and_what_to_try() -> None:
    shown = lines(ONE, on_a_terminal=True)
    assert shown[:3] == [FIRST, "", "  console          http://127.0.0.1:8080"]
    assert shown[shown.index("Try, in another terminal:") + 1 :] == [
        "  echo hello | kaspar produce greetings",
        "  kaspar consume greetings",
        "  curl http://127.0.0.1:8081/subjects",
        "  curl http://127.0.0.1:8082/v3/clusters",
        "  kaspar status",
        "  kaspar stop",
    ]


def test_commands_name_a_cluster_and_a_folder_that_are_not_the_usual_ones() -> None:
    shown = lines(THREE, on_a_terminal=True, default="kaspar-data")
    assert shown[0].startswith("Ready after 1.5 s: 3 brokers, bootstrap servers 127.0.0.1:19092,127.0.0.1:19093,")
    assert "  kaspar consume greetings -b 127.0.0.1:19092" in shown
    assert "  kaspar stop --dir /data/c1" in shown
    assert not [line for line in shown if "curl" in line], "no service runs"


def test_commands_for_a_secured_cluster_log_in() -> None:
    secured = replace(ONE, brokers=(BrokerPlan(1, 9092, 9404, 9500),))
    shown = lines(secured, on_a_terminal=True)
    assert "  kaspar consume greetings --config /data/c1/clients/client.properties" in shown
    assert "  curl --cacert /data/c1/security/ca.pem -u client https://127.0.0.1:8081/subjects" in shown
