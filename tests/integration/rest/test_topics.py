"""Topics, partitions and offsets through version 2."""

import base64

from tests.integration.rest.api import V2, Api
from tests.integration.rest.conftest import NewTopic


def test_topics_are_listed_by_name(api: Api, new_topic: NewTopic) -> None:
    names = [new_topic(), new_topic()]
    response = api.client.get("/topics")
    assert response.headers["content-type"] == V2
    assert set(names) <= set(response.json())
    assert response.json() == sorted(response.json())


def test_a_topic_has_its_settings_and_partitions(api: Api, new_topic: NewTopic) -> None:
    name = new_topic(partitions=2)
    topic = api.client.get(f"/topics/{name}").json()
    assert topic["name"] == name
    assert topic["configs"]["cleanup.policy"] == "delete"
    replica = {"broker": 1, "leader": True, "in_sync": True}
    expected = [{"partition": number, "leader": 1, "replicas": [replica]} for number in range(2)]
    assert topic["partitions"] == expected
    assert api.client.get(f"/topics/{name}/partitions").json() == expected
    assert api.client.get(f"/topics/{name}/partitions/1").json() == expected[1]


def test_the_offsets_of_a_partition_are_its_first_and_its_next(api: Api, new_topic: NewTopic) -> None:
    name = new_topic()
    assert api.client.get(f"/topics/{name}/partitions/0/offsets").json() == {"beginning_offset": 0, "end_offset": 0}
    api.write(name, *(base64.b64encode(b"x").decode() for _ in range(5)), name="binary")
    assert api.client.get(f"/topics/{name}/partitions/0/offsets").json() == {"beginning_offset": 0, "end_offset": 5}


def test_brokers_are_listed_by_id(api: Api) -> None:
    assert api.client.get("/brokers").json() == {"brokers": [1]}


def test_a_trailing_slash_changes_nothing(api: Api, new_topic: NewTopic) -> None:
    name = new_topic()
    assert api.client.get(f"/topics/{name}/").json()["name"] == name
    assert api.client.get("/").json() == {}
