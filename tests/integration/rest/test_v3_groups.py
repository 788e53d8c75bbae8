"""Consumer groups, their members and lags through version 3, with real consumers."""

from collections.abc import Iterator

import httpx
import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.integration.rest.serving import RunningRest
from tests.integration.rest.v3 import V3
from tests.peers.process import BrokerProcess

GROUP = "v3-group"
TOPIC = "v3-lags"


@pytest.fixture(scope="module")
def v3(rest: RunningRest) -> Iterator[V3]:
    with httpx.Client(base_url=rest.url, timeout=30) as client:
        yield V3(client)


@pytest.fixture(scope="module")
def consumer(v3: V3, rest_broker: BrokerProcess) -> Iterator[Consumer]:
    """It has both partitions, and has committed 1 of 3 and 2 of 2 records."""
    v3.create_topic(TOPIC, 2)
    v3.produce(TOPIC, *({"partition_id": number} for number in (0, 0, 0, 1, 1)))
    consumer = Consumer(
        {
            "bootstrap.servers": rest_broker.bootstrap,
            "group.id": GROUP,
            "client.id": "v3-client",
            "group.instance.id": "v3-instance",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([TOPIC])
    assert len(consumer.consume(5, timeout=20)) == 5
    consumer.commit(offsets=[TopicPartition(TOPIC, 0, 1), TopicPartition(TOPIC, 1, 2)], asynchronous=False)
    yield consumer
    consumer.close()


@pytest.fixture(scope="module")
def simple_group(v3: V3, rest_broker: BrokerProcess) -> str:
    """A group that has only committed an offset."""
    topic = v3.create_topic("v3-simple")
    consumer = Consumer({"bootstrap.servers": rest_broker.bootstrap, "group.id": "v3-simple-group"})
    consumer.commit(offsets=[TopicPartition(topic, 0, 0)], asynchronous=False)
    consumer.close()
    return "v3-simple-group"


def related(v3: V3, path: str) -> dict[str, str]:
    return {"related": v3.base + path}


def test_a_group(v3: V3, consumer: Consumer) -> None:
    path = f"/consumer-groups/{GROUP}"
    group = v3.get(path)
    (broker,) = v3.get("/brokers")["data"]
    assert group == {
        "kind": "KafkaConsumerGroup",
        "metadata": {
            "self": v3.base + path,
            "resource_name": f"crn:///kafka={v3.cluster_id}/consumer-group={GROUP}",
        },
        "cluster_id": v3.cluster_id,
        "consumer_group_id": GROUP,
        "is_simple": False,
        "partition_assignor": "range",
        "state": "STABLE",
        "type": "CLASSIC",
        "is_mixed_consumer_group": False,
        "coordinator": related(v3, f"/brokers/{broker['broker_id']}"),
        "consumers": related(v3, f"{path}/consumers"),
        "lag_summary": related(v3, f"{path}/lag-summary"),
    }
    listed = v3.get("/consumer-groups")
    assert listed["kind"] == "KafkaConsumerGroupList"
    assert group in listed["data"]


def test_a_group_that_only_commits_is_simple(v3: V3, simple_group: str) -> None:
    group = v3.get(f"/consumer-groups/{simple_group}")
    assert (group["is_simple"], group["state"], group["partition_assignor"]) == (True, "EMPTY", "")
    assert v3.get(f"/consumer-groups/{simple_group}/consumers")["data"] == []
    (lag,) = v3.get(f"/consumer-groups/{simple_group}/lags")["data"]
    assert (lag["lag"], lag["consumer_id"], lag["instance_id"], lag["client_id"]) == (0, "", None, "")


@pytest.mark.parametrize("name", ["a/b", "a%2Fb", "50%", "é ü"])
def test_a_group_of_any_name_is_where_its_links_lead(v3: V3, rest_broker: BrokerProcess, name: str) -> None:
    topic = v3.create_topic(f"v3-names-{abs(hash(name))}")
    consumer = Consumer({"bootstrap.servers": rest_broker.bootstrap, "group.id": name})
    consumer.commit(offsets=[TopicPartition(topic, 0, 0)], asynchronous=False)
    consumer.close()
    (group,) = [each for each in v3.get("/consumer-groups")["data"] if each["consumer_group_id"] == name]
    assert v3.client.get(group["metadata"]["self"]).json() == group
    (lag,) = v3.client.get(f"{group['metadata']['self']}/lags").json()["data"]
    assert lag["consumer_group_id"] == name
    assert v3.client.get(lag["metadata"]["self"]).json() == lag


def test_the_members_of_a_group_and_their_partitions(v3: V3, consumer: Consumer) -> None:
    listed = v3.get(f"/consumer-groups/{GROUP}/consumers")
    assert listed["kind"] == "KafkaConsumerList"
    (member,) = listed["data"]
    path = f"/consumer-groups/{GROUP}/consumers/{member['consumer_id']}"
    assert v3.get(path) == member
    assert (member["kind"], member["client_id"], member["instance_id"]) == (
        "KafkaConsumer",
        "v3-client",
        "v3-instance",
    )
    assert member["assignments"] == related(v3, f"{path}/assignments")
    assignments = v3.get(f"{path}/assignments")
    assert assignments["kind"] == "KafkaConsumerAssignmentList"
    assert [(each["topic_name"], each["partition_id"]) for each in assignments["data"]] == [(TOPIC, 0), (TOPIC, 1)]
    one = v3.get(f"{path}/assignments/{TOPIC}/partitions/1")
    assert one == assignments["data"][1]
    assert one["partition"] == related(v3, f"/topics/{TOPIC}/partitions/1")
    assert one["lag"] == related(v3, f"/consumer-groups/{GROUP}/lags/{TOPIC}/partitions/1")


def test_how_far_a_group_is_behind(v3: V3, consumer: Consumer) -> None:
    lags = v3.get(f"/consumer-groups/{GROUP}/lags")
    assert lags["kind"] == "KafkaConsumerLagList"
    found = [
        (each["partition_id"], each["current_offset"], each["log_end_offset"], each["lag"]) for each in lags["data"]
    ]
    assert found == [(0, 1, 3, 2), (1, 2, 2, 0)]
    path = f"/consumer-groups/{GROUP}/lags/{TOPIC}/partitions/0"
    one = v3.get(path)
    assert one == lags["data"][0]
    assert (one["kind"], one["client_id"], one["metadata"]["self"]) == (
        "KafkaConsumerLag",
        "v3-client",
        v3.base + path,
    )


def test_the_lag_of_a_group_in_one(v3: V3, consumer: Consumer) -> None:
    summary = v3.get(f"/consumer-groups/{GROUP}/lag-summary")
    (member,) = v3.get(f"/consumer-groups/{GROUP}/consumers")["data"]
    crn = f"crn:///kafka={v3.cluster_id}/consumer-group={GROUP}/lag-summary"
    assert summary == {
        "kind": "KafkaConsumerGroupLagSummary",
        "metadata": {"self": f"{v3.base}/consumer-groups/{GROUP}/lag-summary", "resource_name": crn},
        "cluster_id": v3.cluster_id,
        "consumer_group_id": GROUP,
        "max_lag_consumer_id": member["consumer_id"],
        "max_lag_instance_id": "v3-instance",
        "max_lag_client_id": "v3-client",
        "max_lag_topic_name": TOPIC,
        "max_lag_partition_id": 0,
        "max_lag": 2,
        "total_lag": 2,
        "max_lag_consumer": related(v3, f"/consumer-groups/{GROUP}/consumers/{member['consumer_id']}"),
        "max_lag_partition": related(v3, f"/topics/{TOPIC}/partitions/0"),
    }


NO_GROUP = "Consumer Group nobody could not be found."
NOT_FOUND = "HTTP 404 Not Found"
ERRORS = [
    ("/consumer-groups/nobody", NOT_FOUND),
    ("/consumer-groups/nobody/consumers", NO_GROUP),
    ("/consumer-groups/nobody/consumers/x", NO_GROUP),
    ("/consumer-groups/nobody/consumers/x/assignments", NO_GROUP),
    ("/consumer-groups/nobody/lags", NO_GROUP),
    ("/consumer-groups/nobody/lag-summary", NO_GROUP),
    (f"/consumer-groups/nobody/lags/{TOPIC}/partitions/0", NO_GROUP),
    (f"/consumer-groups/{GROUP}/consumers/x", NOT_FOUND),
    (f"/consumer-groups/{GROUP}/consumers/x/assignments", "Consumer x could not be found."),
    (f"/consumer-groups/{GROUP}/lags/{TOPIC}/partitions/9", NOT_FOUND),
    (f"/consumer-groups/{GROUP}/lags/elsewhere/partitions/0", NOT_FOUND),
    (f"/consumer-groups/{GROUP}/lags/{TOPIC}/partitions/x", NOT_FOUND),
]


@pytest.mark.parametrize(("path", "message"), ERRORS)
def test_what_is_not_there(v3: V3, consumer: Consumer, path: str, message: str) -> None:
    response = v3.request("GET", path)
    assert (response.status_code, response.json()) == (404, {"error_code": 404, "message": message})
