"""/v1, and the metrics page."""

import threading
from typing import Any

import pytest
from starlette.testclient import TestClient

from kaspar.base.exposition import CONTENT_TYPE
from kaspar.monitor.core import Monitor
from kaspar.monitor.doctor import Finding, Severity
from kaspar.monitor.http import own
from kaspar.monitor.http.app import make_app
from kaspar.monitor.lag.windows import Ends
from kaspar.monitor.scraping.exposition import parse
from kaspar.monitor.settings import MonitorConfig
from kaspar.monitor.views import RoundReport
from tests.unit.monitor.lag.offsets import NOW_MS, T0, T1, Rounds

FINDING = Finding("code", Severity.WARNING, "A title", "A detail.", "topic t", None)


@pytest.fixture
def monitor() -> Monitor:
    monitor = Monitor(MonitorConfig.of({}))
    rounds = Rounds()
    for number in range(3):
        group = rounds.evaluate(rounds.read({T0: 5, T1: 7}, {T0: (50, 20), T1: 7}))
        assert group is not None
        report = RoundReport(NOW_MS + number, 3.0, 1, 2, {"group other": "why"} if number == 2 else {})
        monitor.lag.publish({"g": group}, {T0: Ends(50, 20), T1: Ends(7, 7)}, report)
    monitor.rates.add_gauges([("brokers", 3)], NOW_MS)
    monitor.findings = (FINDING,)
    return monitor


@pytest.fixture
def client(monitor: Monitor) -> TestClient:
    return TestClient(make_app(monitor))


def test_groups_and_their_history(client: TestClient) -> None:
    (listed,) = client.get("/v1/groups").json()
    assert (listed["group"], listed["status"], listed["total_lag"]) == ("g", "OK", 45)
    group = client.get("/v1/groups/g").json()
    assert [(each["lag"], each["stable_lag"]) for each in group["partitions"]] == [(45, 15), (0, 0)]
    history = client.get("/v1/groups/g/history", params={"since_ms": NOW_MS + 1}).json()
    assert [(each["at_ms"] - NOW_MS, each["lag"]) for each in history] == [(1, 45), (2, 45)]
    for path in ("/v1/groups/none", "/v1/groups/none/history"):
        assert client.get(path).status_code == 404


def test_the_loop_does_not_encode_large_groups(
    monitor: Monitor, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: dict[str, int] = {}
    look_up, plain = monitor.lag.group, own._plain

    def looked_up(name: str) -> Any:
        threads["of the loop"] = threading.get_ident()
        return look_up(name)

    def converted(content: Any) -> Any:
        threads["of the encoding"] = threading.get_ident()
        return plain(content)

    monkeypatch.setattr(monitor.lag, "group", looked_up)
    monkeypatch.setattr(own, "_plain", converted)
    assert client.get("/v1/groups/g").json()["partitions"][0]["status"] == "OK"
    assert threads["of the encoding"] != threads["of the loop"]


def test_rates_findings_the_cluster_and_a_canary_that_is_not_enabled(client: TestClient) -> None:
    rates = client.get("/v1/rates", params={"since_ms": 0}).json()
    assert rates == {"brokers": [[NOW_MS, 3.0]]}
    assert client.get("/v1/rates", params={"broker": "1"}).json() == {}
    assert client.get("/v1/rates", params={"broker": "x"}).status_code == 400
    assert client.get("/v1/rates", params={"broker": "9" * 5000}).status_code == 400
    (finding,) = client.get("/v1/findings").json()
    assert (finding["severity"], finding["title"]) == ("warning", "A title")
    cluster = client.get("/v1/cluster").json()
    assert (cluster["cluster"], cluster["last_round"]["problems"]) == (None, {"group other": "why"})
    assert client.get("/v1/canary").status_code == 404


def test_the_page_has_the_names_of_burrow_of_kafka_exporter_and_ours(client: TestClient) -> None:
    response = client.get("/metrics")
    assert response.headers["content-type"] == CONTENT_TYPE
    samples = {(each.name, *each.labels.values()): each.value for each in parse(response.text)}
    assert samples["burrow_kafka_consumer_status", "local", "g"] == 1
    assert samples["burrow_kafka_consumer_lag_total", "local", "g"] == 45
    assert samples["burrow_kafka_consumer_partition_lag", "local", "g", "t", "0"] == 45
    assert samples["burrow_kafka_consumer_current_offset", "local", "g", "t", "1"] == 7
    assert samples["burrow_kafka_topic_partition_offset", "local", "t", "0"] == 50
    assert samples["kafka_consumergroup_lag", "g", "t", "0"] == 45
    assert samples["kafka_consumergroup_lag_sum", "g", "t"] == 45
    assert samples["kafka_consumergroup_current_offset_sum", "g", "t"] == 12
    assert samples["kafka_topic_partitions", "t"] == 2
    assert samples["kaspar_consumer_group_stable_lag", "local", "g", "t", "0"] == 15
    assert samples["kaspar_consumer_group_lag_seconds", "local", "g", "t", "1"] == 0
    assert samples["kaspar_monitor_round_problems",] == 1
    assert samples["kaspar_doctor_findings", "warning"] == 1


def test_a_page_of_chosen_families(client: TestClient) -> None:
    response = client.get("/metrics", params={"name[]": "kafka_consumergroup_lag_sum"})
    assert {each.name for each in parse(response.text)} == {"kafka_consumergroup_lag_sum"}


def test_every_metric_is_a_number(client: TestClient) -> None:
    lines = [line for line in client.get("/metrics").text.splitlines() if not line.startswith("#")]
    assert len(list(parse("\n".join(lines)))) == len(lines) > 20
