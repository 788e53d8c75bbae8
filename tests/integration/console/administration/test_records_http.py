"""Records over HTTP: what the page sends and gets, what is in the audit log, and whose rights count."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from confluent_kafka import Producer

from kaspar.client.admin.session import Admin
from kaspar.records.builder import build_batch
from kaspar.records.record import Record
from tests.integration.console.administration.conftest import HERS, RECORDS, Consoles, SecuredBroker

NewTopic = Callable[..., str]


@pytest.fixture(scope="module")
def not_hers(broker: SecuredBroker, new_topic: NewTopic) -> str:
    return new_topic()


def values(page: dict[str, Any]) -> list[str]:
    return [each["value"]["text"] for each in page["records"]]


def test_a_page_has_its_records_its_cursors_and_its_bounds(api: httpx.Client, new_topic: NewTopic) -> None:
    topic = new_topic(2)
    page = api.get(f"/topics/{topic}/records", params={"limit": 3, "partitions": "1"}).json()
    assert values(page) == ["9", "8", "7"]
    assert (page["low"], page["high"], page["stopped"], page["partition_count"]) == ("1:7", "1:10", "full", 2)
    assert page["partitions"] == [{"partition": 1, "start": 0, "stable": RECORDS, "end": RECORDS}]
    older = api.get(
        f"/topics/{topic}/records", params={"at": f"cursor:{page['low']}", "direction": "backward", "partitions": "1"}
    ).json()
    assert values(older) == ["6", "5", "4", "3", "2", "1", "0"]
    filtered = api.get(f"/topics/{topic}/records", params={"filter": "value >= 8 and partition == 0"}).json()
    assert (values(filtered), filtered["scanned"], filtered["stopped"]) == (["9", "8"], 2 * RECORDS, "end")


def test_wrong_parameters_get_a_sentence(api: httpx.Client, new_topic: NewTopic) -> None:
    topic = new_topic()
    for parameters in (
        {"at": "yesterday"},
        {"at": "offset:x"},
        {"direction": "up"},
        {"limit": "0"},
        {"limit": "100000"},
        {"partitions": "x"},
        {"isolation": "serializable"},
        {"value": "msgpack"},
        {"filter": "value >"},
        {"filter": "x" * 2001},
    ):
        response = api.get(f"/topics/{topic}/records", params=parameters)
        assert (response.status_code, response.json()["message"][-1]) == (400, "."), parameters
    assert api.get("/topics/nowhere/records").status_code == 404
    assert api.get(f"/topics/{topic}/records", params={"partitions": "7"}).status_code == 404
    assert api.get(f"/topics/{topic}/records/0/99").status_code == 404
    assert api.get(f"/topics/{topic}/records/0/0/headers").status_code == 404
    assert api.get(f"/topics/{topic}/tail", params={"filter": "value >"}).status_code == 400


def test_a_value_is_downloaded_as_a_file_and_nothing_else(api: httpx.Client, new_topic: NewTopic) -> None:
    topic = new_topic()
    html = b"<script>alert(1)</script>"
    api.post(f"/topics/{topic}/records", json={"value": {"format": "hex", "data": html.hex()}})
    response = api.get(f"/topics/{topic}/records/0/{RECORDS}/value")
    assert response.content == html
    assert response.headers["content-type"] == "application/octet-stream"
    assert response.headers["content-disposition"] == f'attachment; filename="{topic}-0-{RECORDS}-value.bin"'
    assert response.headers["x-content-type-options"] == "nosniff"


def test_writing_is_in_the_audit_log(api: httpx.Client, consoles: Consoles, new_topic: NewTopic) -> None:
    topic, other = new_topic(), new_topic()
    written = api.post(f"/topics/{topic}/records", json={"value": {"format": "text", "data": "secret"}}).json()
    assert (written["topic"], written["partition"], written["offset"]) == (topic, 0, RECORDS)
    done = consoles.audited("produce record", f"topic {topic}")
    assert done["detail"] == f"partition 0, offset {RECORDS}"
    assert "secret" not in json.dumps(done)
    api.post(f"/topics/{topic}/replays", json={"partition": 0, "offset": 3, "topic": other})
    done = consoles.audited("replay record", f"topic {topic}")
    assert done["detail"] == f"partition 0, offset 3, to {other}, partition 0, offset {RECORDS}"
    refused = api.post(f"/topics/{topic}/records", json={"value": {"format": "json", "data": "{"}})
    assert refused.status_code == 400
    assert "is not valid JSON" in consoles.audited("produce record", f"topic {topic}", "refused")["reason"]


def test_dead_letters_are_counted_and_replayed(
    api: httpx.Client, admin: Admin, consoles: Consoles, new_topic: NewTopic
) -> None:
    origin, dead = new_topic(), new_topic()
    headers = (("__connect.errors.topic", origin.encode()), ("__connect.errors.partition", b"0"))
    letters = [Record(1, b"%d" % n, b"bad %d" % n, headers) for n in range(4)]
    admin.client.produce(dead, 0, bytes(build_batch(letters)))
    counted = api.get(f"/topics/{dead}/dead-letters", params={"filter": "key > 0"}).json()
    assert (counted["found"], counted["scanned"], counted["done"]) == (3, RECORDS + 4, True)
    body = {"start": counted["start"], "until": counted["until"], "filter": "key > 0"}
    step = api.post(f"/topics/{dead}/dead-letters", json=body).json()
    assert (step["replayed"], step["done"], step["problem"]) == (3, True, None)
    assert "3 replayed" in consoles.audited("replay dead letters", f"topic {dead}")["detail"]
    page = api.get(f"/topics/{origin}/records", params={"limit": 3}).json()
    assert sorted(values(page)) == ["bad 1", "bad 2", "bad 3"]
    assert [each["headers"] for each in page["records"]] == [[], [], []]


def test_the_brokers_acls_decide_about_reading_and_writing(
    alices_api: httpx.Client, broker: SecuredBroker, not_hers: str
) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    producer.produce(HERS, "for alice")
    assert producer.flush(30) == 0
    assert "for alice" in values(alices_api.get(f"/topics/{HERS}/records").json())
    new = {"value": {"format": "text", "data": "by alice"}}
    assert alices_api.post(f"/topics/{HERS}/records", json=new).status_code == 200
    for response in (
        alices_api.get(f"/topics/{not_hers}/records"),
        alices_api.get(f"/topics/{not_hers}/records/0/0"),
        alices_api.get(f"/topics/{not_hers}/records/0/0/value"),
        alices_api.get(f"/topics/{not_hers}/dead-letters"),
        alices_api.post(f"/topics/{not_hers}/records", json=new),
        alices_api.post(f"/topics/{HERS}/replays", json={"partition": 0, "offset": 0, "topic": not_hers}),
        alices_api.post(f"/topics/{not_hers}/replays", json={"partition": 0, "offset": 0, "topic": HERS}),
    ):
        assert response.status_code == 403, response.text
        assert "by alice" not in response.text


def events(response: httpx.Response) -> Iterator[dict[str, Any]]:
    """The data of each event of a tail."""
    name = ""
    for line in response.iter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        if line.startswith("data: ") and name == "records":
            yield json.loads(line.removeprefix("data: "))


def test_a_tail_is_a_stream_with_the_callers_rights(
    api: httpx.Client, alices_api: httpx.Client, not_hers: str, new_topic: NewTopic
) -> None:
    topic = new_topic()
    with api.stream("GET", f"/topics/{topic}/tail", params={"filter": '"yes"'}) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        stream = events(response)
        assert next(stream)["records"] == []
        for text in ("no", "yes"):
            api.post(f"/topics/{topic}/records", json={"value": {"format": "text", "data": text}})
        found = next(event for event in stream if event["records"])
        assert values(found) == ["yes"]
    with alices_api.stream("GET", f"/topics/{not_hers}/tail") as response:
        first = next(events(response))
        assert first["records"] == []
        assert first["problem"] is not None


def test_without_a_registry_schemas_say_so(api: httpx.Client) -> None:
    response = api.get("/schemas")
    assert (response.status_code, response.json()["message"]) == (
        501,
        "No schema registry is configured: set schema.registry.url.",
    )
