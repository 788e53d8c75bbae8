"""The resources of version 3: clusters, brokers, topics, partitions, replicas and settings, on a real broker."""

import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.integration.rest.serving import RunningRest
from tests.integration.rest.v3 import V3, WAIT_S


@pytest.fixture(scope="module")
def v3(rest: RunningRest) -> Iterator[V3]:
    with httpx.Client(base_url=rest.url, timeout=30) as client:
        yield V3(client)


@pytest.fixture(scope="module")
def broker_id(v3: V3) -> int:
    (broker,) = v3.get("/brokers")["data"]
    number: int = broker["broker_id"]
    return number


@pytest.fixture(scope="module")
def topic(v3: V3) -> str:
    return v3.create_topic("v3-resources", 2, configs=[{"name": "cleanup.policy", "value": "compact"}])


def related(v3: V3, path: str) -> dict[str, str]:
    return {"related": v3.base + path}


# --- Clusters and brokers ---------------------------------------------------------------------------------------------


def test_the_one_cluster(v3: V3, broker_id: int) -> None:
    cluster = v3.get("")
    assert cluster == {
        "kind": "KafkaCluster",
        "metadata": {"self": v3.base, "resource_name": f"crn:///kafka={v3.cluster_id}"},
        "cluster_id": v3.cluster_id,
        "controller": related(v3, f"/brokers/{broker_id}"),
        "acls": related(v3, "/acls"),
        "brokers": related(v3, "/brokers"),
        "broker_configs": related(v3, "/broker-configs"),
        "consumer_groups": related(v3, "/consumer-groups"),
        "topics": related(v3, "/topics"),
        "partition_reassignments": related(v3, "/topics/-/partitions/-/reassignment"),
    }
    listed = v3.client.get("/v3/clusters/").json()
    assert listed["kind"] == "KafkaClusterList"
    assert listed["metadata"] == {"self": v3.base.rpartition("/")[0], "next": None}
    assert listed["data"] == [cluster]


def test_a_broker(v3: V3, broker_id: int) -> None:
    broker = v3.get(f"/brokers/{broker_id}")
    assert v3.get("/brokers") == {
        "kind": "KafkaBrokerList",
        "metadata": {"self": f"{v3.base}/brokers", "next": None},
        "data": [broker],
    }
    assert broker["kind"] == "KafkaBroker"
    assert broker["metadata"]["resource_name"] == f"crn:///kafka={v3.cluster_id}/broker={broker_id}"
    assert (broker["cluster_id"], broker["broker_id"]) == (v3.cluster_id, broker_id)
    assert isinstance(broker["host"], str)
    assert isinstance(broker["port"], int)
    assert broker["configs"] == related(v3, f"/brokers/{broker_id}/configs")
    assert broker["partition_replicas"] == related(v3, f"/brokers/{broker_id}/partition-replicas")


# --- Topics and partitions --------------------------------------------------------------------------------------------


def test_a_topic(v3: V3, topic: str) -> None:
    path = f"/topics/{topic}"
    described = v3.get(path)
    assert described == {
        "kind": "KafkaTopic",
        "metadata": {
            "self": v3.base + path,
            "resource_name": f"crn:///kafka={v3.cluster_id}/topic={topic}",
        },
        "cluster_id": v3.cluster_id,
        "topic_name": topic,
        "is_internal": False,
        "replication_factor": 1,
        "partitions_count": 2,
        "partitions": related(v3, f"{path}/partitions"),
        "configs": related(v3, f"{path}/configs"),
        "partition_reassignments": related(v3, f"{path}/partitions/-/reassignment"),
        "authorized_operations": [],
    }
    listed = v3.get("/topics")
    assert listed["kind"] == "KafkaTopicList"
    assert described in listed["data"]
    assert [each["topic_name"] for each in listed["data"]] == sorted(each["topic_name"] for each in listed["data"])


def test_what_the_caller_may_do_with_a_topic_is_said_if_it_is_asked_for(v3: V3, topic: str) -> None:
    asked = v3.get(f"/topics/{topic}", include_authorized_operations="true")["authorized_operations"]
    assert set(asked) >= {"READ", "WRITE", "DESCRIBE", "DELETE", "ALTER_CONFIGS"}
    listed = v3.get("/topics", include_authorized_operations="true")["data"]
    assert [each["authorized_operations"] for each in listed if each["topic_name"] == topic] == [asked]


def test_the_response_to_a_creation_is_the_topic(v3: V3) -> None:
    response = v3.request("POST", "/topics", {"topic_name": "v3-created", "partitions_count": 3})
    assert (response.status_code, response.headers["location"]) == (201, f"{v3.base}/topics/v3-created")
    v3.wait_for_topic("v3-created")
    assert response.json() == v3.get("/topics/v3-created")


def test_brokers_choose_what_a_creation_leaves_out(v3: V3) -> None:
    response = v3.request("POST", "/topics", {"topic_name": "v3-default"})
    v3.wait_for_topic("v3-default")
    assert response.json()["partitions_count"] == v3.get("/topics/v3-default")["partitions_count"] >= 1


@pytest.mark.parametrize("form", ["list", "object"])
def test_replicas_can_be_assigned(v3: V3, broker_id: int, form: str) -> None:
    replicas: Any = {"0": [broker_id], "1": [broker_id]}
    if form == "list":
        replicas = [{"partition_id": number, "broker_ids": [broker_id]} for number in (1, 0)]
    body = {"topic_name": f"v3-assigned-{form}", "replicas_assignments": replicas}
    response = v3.request("POST", "/topics", body)
    assert (response.status_code, response.json()["partitions_count"]) == (201, 2)
    assert response.json()["replication_factor"] == 1


def test_a_creation_can_be_tried_first(v3: V3) -> None:
    body = {"topic_name": "v3-tried", "partitions_count": 5, "validate_only": True}
    response = v3.request("POST", "/topics", body)
    assert (response.status_code, response.json()["partitions_count"]) == (200, 5)
    assert v3.request("GET", "/topics/v3-tried").status_code == 404
    assert v3.request("POST", "/topics", {**body, "partitions_count": 0}).json()["error_code"] == 40002


def test_partitions_can_be_added(v3: V3) -> None:
    v3.create_topic("v3-growing")
    response = v3.request("PATCH", "/topics/v3-growing", {"partitions_count": 4})
    assert (response.status_code, response.json()["partitions_count"]) == (200, 4)
    assert len(v3.get("/topics/v3-growing/partitions")["data"]) == 4
    refused = v3.request("PATCH", "/topics/v3-growing", {"partitions_count": 2})
    assert (refused.status_code, refused.json()["error_code"]) == (400, 40002)


def test_a_deleted_topic_is_gone(v3: V3) -> None:
    v3.create_topic("v3-deleted")
    assert v3.request("DELETE", "/topics/v3-deleted").status_code == 204
    assert v3.request("DELETE", "/topics/v3-deleted").json()["error_code"] == 40403


def test_a_partition(v3: V3, topic: str, broker_id: int) -> None:
    path = f"/topics/{topic}/partitions/1"
    partition = v3.get(path)
    assert partition == {
        "kind": "KafkaPartition",
        "metadata": {
            "self": v3.base + path,
            "resource_name": f"crn:///kafka={v3.cluster_id}/topic={topic}/partition=1",
        },
        "cluster_id": v3.cluster_id,
        "topic_name": topic,
        "partition_id": 1,
        "leader": related(v3, f"{path}/replicas/{broker_id}"),
        "replicas": related(v3, f"{path}/replicas"),
        "reassignment": related(v3, f"{path}/reassignment"),
    }
    listed = v3.get(f"/topics/{topic}/partitions")
    assert listed["kind"] == "KafkaPartitionList"
    assert listed["data"][1] == partition


def test_the_offsets_of_a_partition(v3: V3) -> None:
    v3.create_topic("v3-offsets")
    v3.produce("v3-offsets", {}, {})
    offsets = v3.get("/topics/v3-offsets/partitions/0/offset")
    assert offsets["kind"] == "KafkaPartitionWithOffsets"
    assert (offsets["earliest_offset"], offsets["latest_offset"]) == (0, 2)
    refused = v3.request("GET", "/topics/v3-offsets/partitions/0/offset", offset_type="middle")
    assert refused.json() == {"error_code": 400, "message": "offset_type:middle is invalid"}


def test_a_replica(v3: V3, topic: str, broker_id: int) -> None:
    path = f"/topics/{topic}/partitions/0/replicas/{broker_id}"
    replica = v3.get(path)
    crn = f"crn:///kafka={v3.cluster_id}/topic={topic}/partition=0/replica={broker_id}"
    assert replica == {
        "kind": "KafkaReplica",
        "metadata": {"self": v3.base + path, "resource_name": crn},
        "cluster_id": v3.cluster_id,
        "topic_name": topic,
        "partition_id": 0,
        "broker_id": broker_id,
        "is_leader": True,
        "is_in_sync": True,
        "broker": related(v3, f"/brokers/{broker_id}"),
    }
    assert v3.get(f"/topics/{topic}/partitions/0/replicas")["data"] == [replica]
    of_broker = v3.get(f"/brokers/{broker_id}/partition-replicas")
    assert of_broker["kind"] == "KafkaReplicaList"
    assert replica in of_broker["data"]


@pytest.mark.parametrize("where", ["/topics/-", "/topics/{topic}"])
def test_no_partition_moves(v3: V3, topic: str, where: str) -> None:
    path = f"{where.format(topic=topic)}/partitions/-/reassignment"
    metadata = {"self": v3.base + path, "next": None}
    assert v3.get(path) == {"kind": "KafkaReassignmentList", "metadata": metadata, "data": []}
    assert v3.request("GET", f"/topics/{topic}/partitions/0/reassignment").status_code == 404


# --- Settings ---------------------------------------------------------------------------------------------------------


def test_a_setting_of_a_topic(v3: V3, topic: str) -> None:
    path = f"/topics/{topic}/configs/cleanup.policy"
    config = v3.get(path)
    synonyms = config.pop("synonyms")
    assert config == {
        "kind": "KafkaTopicConfig",
        "metadata": {
            "self": v3.base + path,
            "resource_name": f"crn:///kafka={v3.cluster_id}/topic={topic}/config=cleanup.policy",
        },
        "cluster_id": v3.cluster_id,
        "topic_name": topic,
        "name": "cleanup.policy",
        "value": "compact",
        "is_default": False,
        "is_read_only": False,
        "is_sensitive": False,
        "source": "DYNAMIC_TOPIC_CONFIG",
    }
    assert synonyms[0] == {"name": "cleanup.policy", "value": "compact", "source": "DYNAMIC_TOPIC_CONFIG"}
    listed = v3.get(f"/topics/{topic}/configs")
    assert listed["kind"] == "KafkaTopicConfigList"
    assert {**config, "synonyms": synonyms} in listed["data"]
    everywhere = v3.get("/topics/-/configs")["data"]
    assert {**config, "synonyms": synonyms} in everywhere
    assert len({each["topic_name"] for each in everywhere}) == len(v3.get("/topics")["data"])


def test_the_settings_that_a_topic_would_have(v3: V3, topic: str) -> None:
    def values(name: str) -> dict[str, str]:
        return {each["name"]: each["value"] for each in v3.get(f"/topics/{name}/default-configs")["data"]}

    defaults = values("v3-not-there-yet")
    assert defaults["cleanup.policy"] == "delete"
    assert values(topic) == defaults
    assert v3.request("GET", "/topics/v3-not-there-yet").status_code == 404


WHERE = {
    "topic": ("/topics/{topic}/configs", "retention.ms", "KafkaTopicConfig"),
    "broker": ("/brokers/{broker}/configs", "log.index.interval.bytes", "KafkaBrokerConfig"),
    "cluster": ("/broker-configs", "log.retention.ms", "KafkaClusterConfig"),
}


@pytest.mark.parametrize("where", WHERE)
def test_settings_are_changed_reset_and_changed_together(v3: V3, topic: str, broker_id: int, where: str) -> None:
    path, name, kind = WHERE[where]
    path = path.format(topic=topic, broker=broker_id)

    def value() -> str | None:
        found = v3.request("GET", f"{path}/{name}")
        if found.status_code == 404 and where == "cluster":  # only what is set is listed
            return None
        assert found.json()["kind"] == kind
        text: str | None = found.json()["value"]
        return text

    def wait_for(expected: str | None) -> None:
        """Apache Kafka's brokers apply their settings a moment after the response."""
        deadline = time.monotonic() + WAIT_S
        while (found := value()) != expected:
            assert time.monotonic() < deadline, found

    def alter(**fields: Any) -> httpx.Response:
        return v3.request("POST", f"{path}:alter", {"data": [{"name": name, **fields}]})

    default = value()
    try:
        assert v3.request("PUT", f"{path}/{name}", {"value": "2"}).status_code == 204
        wait_for("2")
        assert v3.request("DELETE", f"{path}/{name}").status_code == 204
        wait_for(default)
        assert alter(value="3").status_code == 204
        wait_for("3")
        only = v3.request("POST", f"{path}:alter", {"data": [{"name": name, "value": "4"}], "validate_only": True})
        assert (only.status_code, value()) == (204, "3")
        refused = alter(value="many")
        assert (refused.status_code, refused.json()["error_code"]) == (400, 40002)
    finally:
        assert alter(operation="DELETE").status_code == 204
    wait_for(default)


def test_the_settings_of_every_broker(v3: V3, broker_id: int) -> None:
    listed = v3.get("/brokers/-/configs")
    assert listed["data"] == v3.get(f"/brokers/{broker_id}/configs")["data"]
    config = next(each for each in listed["data"] if each["name"] == "num.partitions")
    assert (config["kind"], config["broker_id"], config["is_read_only"]) == ("KafkaBrokerConfig", broker_id, True)
    assert config["metadata"]["self"] == f"{v3.base}/brokers/{broker_id}/configs/num.partitions"


def test_settings_of_several_topics(v3: V3) -> None:
    one, other = v3.create_topic("v3-several-1"), v3.create_topic("v3-several-2")
    change = [{"name": "retention.ms", "value": "5"}]
    body = {"data": [{"topic_name": name, "configs": change} for name in (one, other)]}
    assert v3.request("POST", "/topics/-/configs:alter", body).status_code == 204
    assert [v3.get(f"/topics/{name}/configs/retention.ms")["value"] for name in (one, other)] == ["5", "5"]
    change[0]["value"] = "6"
    body["data"].append({"topic_name": "v3-nowhere", "configs": change})
    response = v3.request("POST", "/topics/-/configs:alter", body)
    assert response.status_code == 207
    (failure,) = response.json()["failures"]
    assert (failure["topic_name"], failure["error_code"]) == ("v3-nowhere", 40403)
    assert v3.get(f"/topics/{one}/configs/retention.ms")["value"] == "6"


# --- Errors -----------------------------------------------------------------------------------------------------------

UNKNOWN_TOPIC = (404, 40403, "This server does not host this topic-partition.")
NOT_FOUND = (404, 404, "HTTP 404 Not Found")
NO_PARTITION = (404, 40402, "Partition not found.")
NO_BODY = (422, 42206, "Payload error. Null input provided. Data is required.")
VALUE = {"value": "1"}

ERRORS: list[tuple[str, str, Any, tuple[int, int, str]]] = [
    ("GET", "/brokers/77", None, NOT_FOUND),
    ("GET", "/brokers/x", None, NOT_FOUND),
    ("GET", "/brokers/77/configs", None, (404, 404, "Broker 77 cannot be found.")),
    ("PUT", "/brokers/77/configs/num.io.threads", VALUE, (404, 404, "Broker 77 cannot be found.")),
    ("GET", "/brokers/77/partition-replicas", None, (404, 404, "Broker 77 cannot be found.")),
    ("GET", "/brokers/{broker}/configs/nothing", None, NOT_FOUND),
    (
        "PUT",
        "/brokers/{broker}/configs/nothing",
        VALUE,
        (404, 404, "Config nothing cannot be found for BROKER {broker} in cluster {cluster}."),
    ),
    ("GET", "/broker-configs/nothing", None, NOT_FOUND),
    ("GET", "/topics/v3-nowhere", None, UNKNOWN_TOPIC),
    ("PATCH", "/topics/v3-nowhere", {"partitions_count": 2}, UNKNOWN_TOPIC),
    ("GET", "/topics/v3-nowhere/configs", None, UNKNOWN_TOPIC),
    ("PUT", "/topics/v3-nowhere/configs/retention.ms", VALUE, UNKNOWN_TOPIC),
    ("GET", "/topics/v3-nowhere/partitions", None, UNKNOWN_TOPIC),
    ("GET", "/topics/v3-nowhere/partitions/-/reassignment", None, UNKNOWN_TOPIC),
    ("POST", "/topics/v3-nowhere/records", {}, UNKNOWN_TOPIC),
    ("POST", "/topics/v3-nowhere/records:batch", {"entries": [{"id": "1"}]}, UNKNOWN_TOPIC),
    ("GET", "/topics/{topic}/partitions/9", None, NO_PARTITION),
    ("GET", "/topics/{topic}/partitions/9/replicas", None, NO_PARTITION),
    ("GET", "/topics/{topic}/partitions/9/offset", None, NO_PARTITION),
    ("GET", "/topics/{topic}/partitions/9/reassignment", None, NO_PARTITION),
    ("GET", "/topics/{topic}/partitions/-1", None, NOT_FOUND),
    ("GET", "/topics/{topic}/partitions/99999999999", None, NOT_FOUND),
    ("GET", "/topics/{topic}/partitions/0/replicas/77", None, NOT_FOUND),
    ("GET", "/topics/{topic}/configs/nothing", None, NOT_FOUND),
    (
        "DELETE",
        "/topics/{topic}/configs/nothing",
        None,
        (404, 404, "Config nothing cannot be found for TOPIC {topic} in cluster {cluster}."),
    ),
    (
        "POST",
        "/topics/{topic}/configs:alter",
        {"data": [{"name": "nothing"}]},
        (404, 404, "Config nothing cannot be found for TOPIC {topic} in cluster {cluster}."),
    ),
    ("POST", "/topics", {"topic_name": "{topic}"}, (400, 40002, "Topic '{topic}' already exists.")),
    ("POST", "/topics", {"topic_name": "a b"}, (400, 40002, "")),
    ("POST", "/topics", {"topic_name": "v3-x", "replication_factor": 7}, (400, 40002, "")),
    ("POST", "/topics", {"topic_name": "v3-x", "configs": [{"name": "nothing", "value": "1"}]}, (400, 40002, "")),
    ("POST", "/topics", {}, (400, 400, "Object missing required field `topic_name`")),
    ("POST", "/topics", {"topic_name": "v3-x", "colour": "red"}, (422, 422, "Unrecognized field: colour")),
    ("POST", "/topics", {"topic_name": "v3-x", "partitions_count": "all"}, (400, 400, "")),
    (
        "POST",
        "/topics",
        {"topic_name": "v3-x", "replicas_assignments": {"1": [1]}},
        (400, 400, "replicas_assignments must have each partition from 0 on, and each once"),
    ),
    ("POST", "/topics", b"", NO_BODY),
    ("POST", "/topics", b"null", NO_BODY),
    ("POST", "/topics", b"{", (400, 400, "")),
    ("POST", "/topics", b"\xff", (400, 400, "")),
    ("POST", "/topics/{topic}/configs:alter", {"data": [{"name": "a", "operation": "ADD"}]}, (400, 400, "")),
    ("POST", "/topics/{topic}/records", b"", NO_BODY),
    ("PUT", "/topics", {}, (405, 405, "HTTP 405 Method Not Allowed")),
    ("GET", "/nothing", None, NOT_FOUND),
    ("GET", "/acls", None, (400, 40002, "")),
]


@pytest.mark.parametrize(("method", "path", "body", "expected"), ERRORS)
def test_errors(
    v3: V3, topic: str, broker_id: int, method: str, path: str, body: Any, expected: tuple[int, int, str]
) -> None:
    def filled(text: str) -> str:
        return text.replace("{topic}", topic).replace("{broker}", str(broker_id)).replace("{cluster}", v3.cluster_id)

    if isinstance(body, dict) and body.get("topic_name") == "{topic}":
        body = {"topic_name": topic}
    response = v3.request(method, filled(path), body)
    status, code, message = expected
    assert (response.status_code, response.json()["error_code"]) == (status, code), response.text
    assert response.headers["content-type"] == "application/json"
    if message:
        assert response.json()["message"] == filled(message)


@pytest.mark.parametrize("path", ["", "/topics", "/consumer-groups", "/brokers", "/acls", "/broker-configs"])
def test_there_is_no_other_cluster(v3: V3, path: str) -> None:
    response = v3.client.get(f"/v3/clusters/elsewhere{path}")
    expected = {"error_code": 404, "message": "Cluster elsewhere cannot be found."}
    assert (response.status_code, response.json()) == (404, expected)


def test_records_are_not_written_to_another_cluster(v3: V3, topic: str) -> None:
    response = v3.client.post(f"/v3/clusters/elsewhere/topics/{topic}/records", json={})
    assert response.json() == {"error_code": 404, "message": "Cluster elsewhere cannot be found."}


def test_media_types_other_than_json_are_refused(v3: V3) -> None:
    response = v3.client.get(v3.base, headers={"accept": "text/html"})
    assert (response.status_code, response.json()["error_code"]) == (406, 406)
    response = v3.client.post(f"{v3.base}/topics", content=b"{}", headers={"content-type": "text/plain"})
    assert (response.status_code, response.json()["error_code"]) == (415, 415)


def test_the_description_of_the_api_is_served(v3: V3) -> None:
    described = v3.client.get("/v3/openapi.json").json()
    assert described["openapi"] == "3.1.0"
    assert "/v3/clusters/{cluster_id}/topics/{topic_name}/records" in described["paths"]
