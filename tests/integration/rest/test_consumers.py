"""Consumer instances of version 2: subscriptions, positions, commits, and what a response has."""

import base64
import threading
import time
import uuid
from typing import Any

import httpx
import pytest

from kaspar.base.clock import ManualClock
from tests.integration.rest.api import V2, Api, embedded
from tests.integration.rest.conftest import NewTopic
from tests.integration.rest.serving import RunningRest
from tests.integration.rest.test_produce import SCHEMAS
from tests.peers.process import BrokerProcess


@pytest.fixture
def group() -> str:
    return f"group-{uuid.uuid4()}"


def values(records: list[dict[str, Any]]) -> list[Any]:
    return [each["value"] for each in records]


def at(topic: str, offset: int, **more: Any) -> dict[str, Any]:
    return {"offsets": [{"topic": topic, "partition": 0, "offset": offset, **more}]}


def partitions(topic: str) -> dict[str, Any]:
    return {"partitions": [{"topic": topic, "partition": 0}]}


def test_an_instance_is_named_by_the_proxy_or_its_creator(api: Api, rest: RunningRest, group: str) -> None:
    created = api.create(group).json()
    assert created["instance_id"].startswith("rest-consumer-")
    assert created["base_uri"] == f"{rest.url}/consumers/{group}/instances/{created['instance_id']}"
    assert api.client.delete(created["base_uri"]).status_code == 204
    named = api.create(group, name="a/b").json()
    assert named == {"instance_id": "a/b", "base_uri": f"{rest.url}/consumers/{group}/instances/a%2Fb"}


def test_a_deleted_instance_is_unknown_and_its_name_is_free(api: Api, group: str) -> None:
    instance = api.instance(group, id="one")
    again = api.create(group, name="one")
    assert (again.status_code, again.json()["error_code"]) == (409, 40902)
    assert instance.delete().status_code == 204
    assert (instance.delete().status_code, instance.get("/records").json()["error_code"]) == (404, 40403)
    api.instance(group, id="one")


def test_json_records_are_read_as_they_were_written(api: Api, new_topic: NewTopic, group: str) -> None:
    topic = new_topic()
    body = b'{"records":[{"key":"k","value":{"n":123456789012345678901234567890,"f":1.10}}]}'
    written = api.produce(topic, body, "json").json()
    assert [each["error"] for each in written["offsets"]] == [None], written
    instance = api.instance(group)
    instance.assign((topic, 0))
    deadline = time.monotonic() + 20
    while (response := instance.get("/records")).text == "[]":
        assert time.monotonic() < deadline
    assert response.headers["content-type"] == embedded("json")
    expected = f'[{{"topic":"{topic}","key":"k","value":{{"n":123456789012345678901234567890,"f":1.10}},'
    assert response.text == expected + '"partition":0,"offset":0}]'


def test_binary_records_are_read_in_base64(api: Api, new_topic: NewTopic, group: str) -> None:
    topic = new_topic()
    api.produce(topic, {"records": [{"key": "AP8=", "value": None}]})
    instance = api.instance(group, "binary")
    instance.assign((topic, 0))
    assert instance.read(1) == [{"topic": topic, "key": "AP8=", "value": None, "partition": 0, "offset": 0}]


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_records_with_schemas_are_read_as_json(api: Api, new_topic: NewTopic, group: str, name: str) -> None:
    topic = new_topic()
    body = {
        "key_schema": SCHEMAS[name],
        "value_schema": SCHEMAS[name],
        "records": [{"key": {"amount": 1}, "value": {"amount": 2}}, {"key": None, "value": {"amount": 3}}],
    }
    assert api.produce(topic, body, name).status_code == 200
    instance = api.instance(group, name)
    instance.assign((topic, 0))
    first, second = instance.read(2)
    assert (first["key"], first["value"]) == ({"amount": 1}, {"amount": 2})
    assert (second["key"], second["value"]) == (None, {"amount": 3})


def test_a_record_that_cannot_be_decoded_stops_the_instance_until_it_seeks_past_it(
    api: Api, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic()
    api.write(topic, 1)
    api.produce(topic, {"records": [{"value": base64.b64encode(b"{no").decode()}]})
    api.write(topic, 3)
    instance = api.instance(group)
    instance.assign((topic, 0))
    assert values(instance.read(1)) == [1]
    for _ in range(2):
        refused = instance.get("/records")
        assert (refused.status_code, refused.json()["error_code"]) == (408, 40801)
        assert f"partition {topic}-0 at offset 1" in refused.json()["message"]
    assert instance.post("/positions", at(topic, 2)).status_code == 204
    assert values(instance.read(1)) == [3]


def test_a_pattern_subscribes_to_all_topics_that_match(api: Api, new_topic: NewTopic, group: str) -> None:
    prefix = f"pattern-{uuid.uuid4()}"
    topics = [new_topic(prefix=prefix) for _ in range(2)]
    for topic in topics:
        api.write(topic, topic)
    instance = api.instance(group)
    assert instance.post("/subscription", {"topic_pattern": f"{prefix}-.*"}).status_code == 204
    assert set(instance.get("/subscription").json()["topics"]) == set(topics)
    assert set(values(instance.read(2))) == set(topics)


@pytest.mark.parametrize("pattern", ["(", "(?=a)b", "a{1,100000}"])
def test_a_pattern_that_re2_does_not_have_is_refused(api: Api, group: str, pattern: str) -> None:
    refused = api.instance(group).post("/subscription", {"topic_pattern": pattern})
    assert (refused.status_code, refused.json()["error_code"]) == (422, 422)


def test_topics_pattern_and_partitions_exclude_each_other_until_the_instance_unsubscribes(
    api: Api, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic()
    instance = api.instance(group)
    instance.subscribe(topic)
    message = "Illegal state: Subscription to topics, partitions and pattern are mutually exclusive"
    for path, body in (
        ("/assignments", partitions(topic)),
        ("/subscription", {"topic_pattern": "x"}),
        ("/subscription", {"topics": [topic], "topic_pattern": "x"}),
    ):
        assert instance.post(path, body).json() == {"error_code": 40903, "message": message}
    assert instance.delete("/subscription").status_code == 204
    assert instance.get("/subscription").json() == {"topics": []}
    instance.assign((topic, 0))
    assert instance.get("/assignments").json() == partitions(topic)
    assert instance.post("/subscription", {"topics": [topic]}).json()["error_code"] == 40903


def test_an_instance_seeks_in_partitions_that_it_has(api: Api, new_topic: NewTopic, group: str) -> None:
    topic = new_topic()
    api.write(topic, *range(5))
    instance = api.instance(group)
    refused = instance.post("/positions", at(topic, 1))
    assert refused.json() == {
        "error_code": 40903,
        "message": f"Illegal state: No current assignment for partition {topic}-0",
    }
    instance.assign((topic, 0))
    assert instance.post("/positions", at(topic, 3)).status_code == 204
    assert values(instance.read(2)) == [3, 4]
    assert instance.post("/positions/beginning", partitions(topic)).status_code == 204
    assert values(instance.read(5)) == [0, 1, 2, 3, 4]
    assert instance.post("/positions/end", partitions(topic)).status_code == 204
    api.write(topic, "new")
    assert values(instance.read(1)) == ["new"]


def test_a_commit_covers_what_responses_had_and_no_more(api: Api, new_topic: NewTopic, group: str) -> None:
    topic = new_topic()
    api.write(topic, *("x" * 100 for _ in range(10)))
    instance = api.instance(group, auto_commit_enable="false")
    instance.assign((topic, 0))
    assert instance.post("/offsets").status_code == 200  # nothing to commit
    assert instance.committed(topic) == []
    deadline = time.monotonic() + 20
    while not (some := instance.get("/records", max_bytes=350).json()):
        assert time.monotonic() < deadline
    assert len(some) == 3
    assert instance.post("/offsets").json() == []
    assert instance.committed(topic) == [{"topic": topic, "partition": 0, "offset": 3, "metadata": ""}]
    other = api.instance(group)
    other.assign((topic, 0))
    assert [each["offset"] for each in other.read(7)] == list(range(3, 10))


def test_offsets_of_processed_records_are_committed_with_metadata(api: Api, new_topic: NewTopic, group: str) -> None:
    topic = new_topic()
    instance = api.instance(group)
    assert instance.post("/offsets", at(topic, 4, metadata="mine")).status_code == 200
    assert instance.committed(topic) == [{"topic": topic, "partition": 0, "offset": 5, "metadata": "mine"}]


def test_offsets_are_committed_by_themselves_when_an_instance_is_deleted(
    api: Api, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic()
    api.write(topic, 1, 2)
    instance = api.instance(group, auto_commit_enable=True)
    instance.subscribe(topic)
    assert values(instance.read(2)) == [1, 2]
    instance.delete()
    api.write(topic, 3)
    other = api.instance(group)
    other.subscribe(topic)
    assert values(other.read(1)) == [3]


def test_a_response_has_a_record_however_large(api: Api, new_topic: NewTopic, group: str) -> None:
    topic = new_topic()
    api.write(topic, "x" * 1000, "y")
    instance = api.instance(group)
    instance.assign((topic, 0))
    deadline = time.monotonic() + 20
    while not (first := instance.get("/records", max_bytes=10).json()):
        assert time.monotonic() < deadline
    assert values(first) == ["x" * 1000]
    assert values(instance.read(1)) == ["y"]


def test_a_request_waits_for_its_timeout_unless_it_has_the_bytes_that_it_wants(
    api: Api, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic()
    api.write(topic, 1)
    patient = api.instance(group, fetch_min_bytes=-1, consumer_request_timeout_ms=1500)
    patient.assign((topic, 0))
    started = threading.Event()
    found: list[Any] = []

    def read() -> None:
        started.set()
        found.extend(values(patient.get("/records").json()))

    reader = threading.Thread(target=read)
    reader.start()
    started.wait()
    time.sleep(0.3)  # the record that it has is not all that it waits for
    api.write(topic, 2)
    reader.join()
    assert found == [1, 2]


def test_instances_of_a_group_share_its_partitions(api: Api, new_topic: NewTopic, group: str) -> None:
    topic = new_topic(partitions=2)
    body = {"records": [{"value": number, "partition": number % 2} for number in range(20)]}
    api.produce(topic, body, "json")
    instances = [api.instance(group) for _ in range(2)]
    for instance in instances:
        instance.subscribe(topic)
    deadline = time.monotonic() + 20
    while any(len(each.get("/assignments").json()["partitions"]) != 1 for each in instances):
        assert time.monotonic() < deadline
        for instance in instances:
            instance.get("/records", timeout=50)
    api.produce(topic, {"records": [{"value": f"last {number}", "partition": number} for number in range(2)]}, "json")
    last = [values(each.read(1))[-1] for each in instances]
    assert sorted(last) == ["last 0", "last 1"]


def test_two_requests_at_once_share_the_records_of_an_instance(api: Api, new_topic: NewTopic, group: str) -> None:
    topic = new_topic()
    instance = api.instance(group)
    instance.assign((topic, 0))
    found: list[Any] = []
    readers = [threading.Thread(target=lambda: found.extend(values(instance.get("/records").json()))) for _ in range(2)]
    for reader in readers:
        reader.start()
    api.write(topic, *range(50))
    for reader in readers:
        reader.join()
    deadline = time.monotonic() + 20
    while len(found) < 50:
        assert time.monotonic() < deadline
        found += values(instance.get("/records").json())
    assert sorted(found) == list(range(50))


def test_many_requests_that_wait_leave_threads_for_others(
    rest_broker: BrokerProcess, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic()
    settings = {
        "bootstrap.servers": rest_broker.bootstrap,
        "consumer.threads": "2",
        "consumer.request.timeout.ms": "30000",
    }
    with RunningRest(settings) as rest, httpx.Client(base_url=rest.url, timeout=60) as client:
        api = Api(client)
        waiting = [api.instance(f"{group}-{number}") for number in range(6)]
        for each in waiting:
            each.assign((topic, 0))
        readers = [threading.Thread(target=each.read, args=(1,)) for each in waiting]
        for reader in readers:
            reader.start()
        busy = api.instance(f"{group}-busy")
        assert busy.post("/offsets", at(topic, 1)).status_code == 200
        assert busy.committed(topic)[0]["offset"] == 2
        assert all(reader.is_alive() for reader in readers)
        api.write(topic, "at last")
        for reader in readers:
            reader.join(20)
            assert not reader.is_alive()
        api.delete_instances()


def test_an_instance_expires_when_it_is_not_used(rest_broker: BrokerProcess, group: str) -> None:
    clock = ManualClock()
    settings = {"bootstrap.servers": rest_broker.bootstrap, "consumer.instance.timeout.ms": "60000"}
    with RunningRest(settings, clock=clock) as rest, httpx.Client(base_url=rest.url, timeout=30) as client:
        instance = Api(client).instance(group, id="x")
        clock.advance(50_000)
        assert instance.get("/subscription").status_code == 200
        clock.advance(59_000)
        assert instance.get("/subscription").status_code == 200
        clock.advance(60_000)
        assert instance.get("/subscription").json()["error_code"] == 40403
        deadline = time.monotonic() + 20
        while Api(client).create(group, name="x").status_code == 409:  # until it is closed
            assert time.monotonic() < deadline


def test_instances_are_limited_in_number(rest_broker: BrokerProcess, group: str) -> None:
    settings = {"bootstrap.servers": rest_broker.bootstrap, "kaspar.consumer.instances": "2"}
    with RunningRest(settings) as rest, httpx.Client(base_url=rest.url, timeout=30) as client:
        api = Api(client)
        first, _ = api.instance(group), api.instance(group)
        refused = api.create(group)
        assert (refused.status_code, refused.json()["error_code"]) == (429, 42901)
        first.delete()
        assert api.create(group).status_code == 200


def test_records_read_for_a_client_that_is_gone_are_read_again(api: Api, new_topic: NewTopic, group: str) -> None:
    topic = new_topic()
    instance = api.instance(group, fetch_min_bytes=-1, consumer_request_timeout_ms=20_000)
    instance.assign((topic, 0))
    api.write(topic, 1, 2)
    with httpx.Client(timeout=httpx.Timeout(10, read=1.0)) as impatient, pytest.raises(httpx.ReadTimeout):
        impatient.get(instance.uri + "/records", headers={"accept": embedded("json")})
    deadline = time.monotonic() + 20
    while not (found := instance.get("/records", timeout=200).json()):
        assert time.monotonic() < deadline
    assert values(found) == [1, 2]


def test_a_response_without_records_has_the_general_type(api: Api, group: str) -> None:
    instance = api.instance(group)
    assert instance.get("/subscription").headers["content-type"] == V2


def test_an_instance_of_a_group_of_any_name_is_where_its_uri_leads(api: Api, new_topic: NewTopic) -> None:
    topic = new_topic()
    api.write(topic, "hello")
    for group in ("with%2Fslash", "with%252Fsign", "75%25"):
        instance = api.instance(group)
        assert f"/consumers/{group}/instances/" in instance.uri
        instance.assign((topic, 0))
        assert instance.read(1)[0]["value"] == "hello"
