"""The console's views of an Apache Kafka cluster, over HTTP: what it shows of ours, it shows of that."""

from collections.abc import Iterator

import httpx
import pytest
from confluent_kafka import Producer

from kaspar.base.ids import TopicPartition
from kaspar.client.admin.creation import NewTopic, create_topics
from kaspar.client.admin.group_offsets import alter_group_offsets
from kaspar.client.admin.session import Admin, raise_first
from kaspar.console.acls import NOT_SECURED
from kaspar.console.running import ConsoleServer
from kaspar.web.host_thread import HostThread
from tests.peers.kafka import ApacheKafka, kafka_jars
from tests.peers.missing import unless_missing
from tests.peers.observed import wait_until

CHANGE = {"X-Kaspar-Console": "1"}
FAST = {"cluster.interval.ms": "500", "lag.interval.ms": "500"}


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    """Two partitions with five records each, a group that has read four of them, and a transaction that is open."""
    unless_missing(kafka_jars)
    with ApacheKafka(tmp_path_factory.mktemp("kafka"), overrides={"auto.create.topics.enable": "false"}) as broker:
        with Admin(broker.bootstrap) as admin:
            raise_first(create_topics(admin, [NewTopic("orders", 2, 1)]).values())
            settings = {"bootstrap.servers": broker.bootstrap, "transactional.id": "pay", "log_level": 0}
            producer = Producer(settings)
            producer.init_transactions(30)
            producer.begin_transaction()
            for number in range(10):
                producer.produce("orders", str(number), partition=number % 2)
            assert producer.flush(30) == 0
            committed = {TopicPartition("orders", 0): 3, TopicPartition("orders", 1): 1}
            assert set(alter_group_offsets(admin, "billing", committed).values()) == {None}
        yield broker
        producer.abort_transaction(30)


@pytest.fixture(scope="module")
def api(kafka: ApacheKafka) -> Iterator[httpx.Client]:
    values = {"listeners": "http://127.0.0.1:0", "bootstrap.servers": kafka.bootstrap, **FAST}
    host = HostThread([ConsoleServer(values)])
    host.start()
    try:
        with httpx.Client(base_url=f"{host.urls['console'][0]}/api", headers=CHANGE, timeout=30) as client:
            yield client
    finally:
        host.stop()


def test_overview_and_brokers(api: httpx.Client) -> None:
    overview = api.get("/overview").raise_for_status().json()
    assert (overview["brokers"], overview["controller_id"], overview["offline"]["count"]) == (1, 1, 0)
    (broker,) = api.get("/brokers").raise_for_status().json()
    assert (broker["broker_id"], broker["is_up"], broker["is_controller"]) == (1, True, True)
    (directory,) = api.get("/brokers/1/log-dirs").raise_for_status().json()
    assert directory["size"] > 0
    settings = {each["name"]: each for each in api.get("/brokers/1/settings").raise_for_status().json()}
    assert settings["auto.create.topics.enable"]["value"] == "false"
    assert api.get("/brokers/1/loggers").raise_for_status().json()


def test_topics(api: httpx.Client) -> None:
    (row,) = api.get("/topics", params={"search": "orders"}).raise_for_status().json()["rows"]
    assert row["partitions"] == 2
    topic = api.get("/topics/orders").raise_for_status().json()
    assert [each["end_offset"] for each in topic["partitions"]] == [5, 5]
    settings = {each["name"]: each for each in api.get("/topics/orders/settings").raise_for_status().json()}
    assert settings["retention.ms"]["value"] == "604800000"


def test_groups_with_their_lag(api: httpx.Client) -> None:
    def is_seen() -> bool:
        (row,) = api.get("/groups", params={"search": "billing"}).raise_for_status().json()["rows"]
        return bool(row["total_lag"] == 6)

    wait_until(is_seen, "the monitor has seen the lag")
    group = api.get("/groups/billing").raise_for_status().json()
    assert (group["state"], len(group["partitions"])) == ("Empty", 2)
    assert [each["group"] for each in api.get("/topics/orders/groups").raise_for_status().json()] == ["billing"]


def test_transactions(api: httpx.Client) -> None:
    (row,) = api.get("/transactions", params={"phase": "open"}).raise_for_status().json()["rows"]
    assert (row["transactional_id"], row["state"], row["partitions"]) == ("pay", "Ongoing", ["orders-0", "orders-1"])
    assert api.get("/transactions/pay").raise_for_status().json() == row
    assert api.get("/hanging-transactions").raise_for_status().json()["found"] == []


def test_what_the_cluster_does_not_have_is_a_sentence(api: httpx.Client) -> None:
    acls = api.get("/acls").raise_for_status().json()
    assert (acls["rows"], acls["is_secured"], acls["remark"]) == ([], False, NOT_SECURED)
    acl = {"resource_type": "TOPIC", "resource_name": "orders", "pattern_type": "LITERAL", "host": "*"}
    body = {"acls": [{**acl, "principal": "User:alice", "operation": "READ", "permission_type": "ALLOW"}]}
    refused = api.post("/acls", json=body)
    assert (refused.status_code, refused.json()["code"]) == (400, "SECURITY_DISABLED")
    assert refused.json()["message"] == "No Authorizer is configured."
    assert api.get("/topics/nowhere").status_code == 404
    assert api.get("/users").raise_for_status().json()["page"]["rows"] == []
    assert api.get("/quotas").raise_for_status().json()["rows"] == []


def test_findings(api: httpx.Client) -> None:
    looked = api.post("/findings").raise_for_status().json()
    assert looked["hidden"] == 0
