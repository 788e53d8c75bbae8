"""Burrow's HTTP API, as its clients read it."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from kaspar.base.ids import TopicPartition
from kaspar.monitor.core import Monitor
from kaspar.monitor.http.app import make_app
from kaspar.monitor.lag.reading import Members
from kaspar.monitor.lag.windows import Ends
from kaspar.monitor.settings import MonitorConfig
from kaspar.monitor.views import Owner, RoundReport
from tests.unit.monitor.lag.offsets import INTERVALS, NOW_MS, T0, T1, Rounds

OWNER = Owner("m-1", "billing-client", "/10.0.0.7")
COMMIT_KEYS = {"offset", "timestamp", "observedAt", "lag"}


@pytest.fixture
def monitor() -> Monitor:
    """Of group `g`: partition 0 is stalled by its owner, partition 1 has no lag. Group `idle` has none either."""
    monitor = Monitor(MonitorConfig.of({"bootstrap.servers": "a:1, b:2", "cluster.name": "prod"}))
    rounds = Rounds()
    rounds.evaluator.add_members({"g": Members(1, {T0: OWNER})})
    for number in range(2 * INTERVALS + 1):
        group = rounds.evaluate(rounds.read({T0: min(number, 10), T1: number}, {T0: 100, T1: number}))
    assert group is not None
    ends = {T0: Ends(100, 100), T1: Ends(19, 19), TopicPartition("gap", 1): Ends(5, 5)}
    monitor.lag.publish({"g": group}, ends, RoundReport(NOW_MS, 3.0, 1, 2))
    return monitor


@pytest.fixture
def client(monitor: Monitor) -> TestClient:
    return TestClient(make_app(monitor))


def get(client: TestClient, path: str, status: int = 200) -> Any:
    response = client.get(path)
    assert response.status_code == status
    body = response.json()
    assert body["request"]["url"] == path
    assert body["request"]["host"]
    return body


def test_health_and_readiness(client: TestClient) -> None:
    assert client.get("/burrow/admin").text == "GOOD"
    assert client.get("/burrow/admin/ready").text == "READY"


def test_it_is_not_ready_before_offsets_were_read() -> None:
    response = TestClient(make_app(Monitor(MonitorConfig.of({})))).get("/burrow/admin/ready")
    assert (response.status_code, response.text) == (503, "STARTING")


def test_the_cluster(client: TestClient) -> None:
    body = get(client, "/v3/kafka")
    assert (body["error"], body["message"], body["clusters"]) == (False, "cluster list returned", ["prod"])
    module = get(client, "/v3/kafka/prod")["module"]
    assert (module["servers"], module["offset-refresh"]) == (["a:1", "b:2"], 10)
    assert get(client, "/v3/config/cluster/prod")["module"] == module


def test_topics(client: TestClient) -> None:
    assert get(client, "/v3/kafka/prod/topic")["topics"] == ["gap", "t"]
    assert get(client, "/v3/kafka/prod/topic/t")["offsets"] == [100, 19]
    assert get(client, "/v3/kafka/prod/topic/gap")["offsets"] == [-1, 5]
    assert get(client, "/v3/kafka/prod/topic/t/consumers")["consumers"] == ["g"]
    assert get(client, "/v3/kafka/prod/topic/gap/consumers")["consumers"] == []


def test_a_group_with_the_commits_of_its_windows(client: TestClient) -> None:
    assert get(client, "/v3/kafka/prod/consumer")["consumers"] == ["g"]
    first, second = get(client, "/v3/kafka/prod/consumer/g")["topics"]["t"]
    assert (first["owner"], first["client_id"], first["current-lag"]) == ("/10.0.0.7", "billing-client", 90)
    assert [each["offset"] for each in first["offsets"]] == list(range(1, 11))
    assert set(first["offsets"][0]) == COMMIT_KEYS
    assert (second["owner"], second["current-lag"]) == ("", 0)


def test_the_status_has_the_partitions_that_are_not_ok_and_lag_has_all(client: TestClient) -> None:
    status = get(client, "/v3/kafka/prod/consumer/g/status")["status"]
    lag = get(client, "/v3/kafka/prod/consumer/g/lag")["status"]
    for each in (status, lag):
        assert (each["cluster"], each["group"], each["status"], each["complete"]) == ("prod", "g", "ERR", 1.0)
        assert (each["partition_count"], each["totallag"], each["maxlag"]["partition"]) == (2, 90, 0)
    assert [each["status"] for each in status["partitions"]] == ["STALL"]
    assert [each["status"] for each in lag["partitions"]] == ["STALL", "OK"]
    (stalled,) = status["partitions"]
    assert set(stalled) == {
        "topic",
        "partition",
        "owner",
        "client_id",
        "status",
        "start",
        "end",
        "current_lag",
        "complete",
    }
    assert (stalled["end"]["offset"], set(stalled["start"])) == (10, COMMIT_KEYS)


def test_a_group_that_does_not_exist_has_burrows_status_for_that(client: TestClient) -> None:
    for path in ("/v3/kafka/prod/consumer/none/status", "/v3/kafka/prod/consumer/none/lag"):
        body = get(client, path, 404)
        assert (body["error"], body["status"]["status"], body["status"]["partitions"]) == (False, "NOTFOUND", [])
    assert get(client, "/v3/kafka/prod/consumer/none", 404)["message"] == "cluster or consumer not found"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/v3/kafka/other", "cluster module not found"),
        ("/v3/kafka/other/topic", "cluster not found"),
        ("/v3/kafka/other/topic/t", "cluster or topic not found"),
        ("/v3/kafka/prod/topic/none", "cluster or topic not found"),
        ("/v3/kafka/other/consumer", "cluster not found"),
        ("/v3/kafka/other/consumer/g", "cluster or consumer not found"),
        ("/v3/config/storage/none", "storage module not found"),
    ],
)
def test_what_is_not_there(client: TestClient, path: str, message: str) -> None:
    body = get(client, path, 404)
    assert (body["error"], body["message"]) == (True, message)


def test_other_paths_and_methods(client: TestClient) -> None:
    response = client.get("/v3/none")
    assert (response.status_code, response.json()) == (
        404,
        {"error": True, "message": "invalid request type", "result": {}},
    )
    assert client.post("/v3/kafka").status_code == 405
    assert client.get("/v3/kafka/").status_code == 200


def test_modules_of_the_settings(client: TestClient) -> None:
    assert get(client, "/v3/config")["message"] == "main config returned"
    assert get(client, "/v3/config/storage")["modules"] == ["default"]
    storage = get(client, "/v3/config/storage/default")["module"]
    assert (storage["intervals"], storage["expire-group"]) == (10, 604_800)
    assert get(client, "/v3/config/notifier")["modules"] == []
    assert get(client, "/v3/config/evaluator/default")["module"]["expire-cache"] == 10
    assert get(client, "/v3/config/consumer/prod")["module"]["servers"] == ["a:1", "b:2"]
