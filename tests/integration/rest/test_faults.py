"""Slow clients, a full buffer, and a broker that goes and comes back."""

import base64
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest

from kaspar.testing import Broker
from tests.integration.rest.api import Api, embedded
from tests.integration.rest.conftest import NewTopic
from tests.integration.rest.serving import RunningRest
from tests.integration.rest.test_produce import records_of

KILOBYTE = base64.b64encode(bytes(1000)).decode()


@pytest.fixture
def own_broker() -> Iterator[Broker]:
    with Broker(process=True) as broker:
        yield broker


def values_for(broker: Broker, **more: str) -> dict[str, str]:
    return {
        "bootstrap.servers": broker.bootstrap_servers,
        **{name.replace("_", "."): value for name, value in more.items()},
    }


def test_a_client_that_sends_half_a_request_holds_up_nobody(api: Api, rest: RunningRest, new_topic: NewTopic) -> None:
    topic = new_topic()
    where = urlsplit(rest.url)
    head = (
        f"POST /topics/{topic} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {embedded('json')}\r\n"
        "Content-Length: 1000\r\n\r\n"
    )
    with socket.create_connection((where.hostname or "", where.port or 0)) as slow:
        slow.sendall(head.encode() + b'{"records":[{"value":')
        api.write(topic, "quick")
        slow.sendall(b"1")
        api.write(topic, "quick again")
    assert api.client.get(f"/topics/{topic}/partitions/0/offsets").json()["end_offset"] == 2


COSTLY = {
    "jsonschema": {
        "value_schema": json.dumps(
            {
                "$id": "http://example.org/a",
                "anyOf": [
                    {"type": "array", "items": {"$ref": "http://example.org/a"}},
                    {"type": "array", "items": {"$ref": "http://example.org/a"}, "minItems": 0},
                    {"type": "integer"},
                ],
            }
        ),
        "records": [{"value": json.loads("[" * 40 + "]" * 40)}] * 20,
    },
    "avro": {
        "value_schema": '{"type":"array","items":["null",{"type":"record","name":"R","fields":[]}]}',
        "records": [{"value": [{"R": {}}] * 200_000}],
    },
}


@pytest.mark.parametrize("name", COSTLY)
def test_values_that_take_long_to_encode_hold_up_nobody(
    api: Api, rest: RunningRest, new_topic: NewTopic, name: str
) -> None:
    topic, others = new_topic(), new_topic()
    with httpx.Client(base_url=rest.url, timeout=60) as client:
        costly = threading.Thread(target=lambda: Api(client).produce(topic, COSTLY[name], name))
        costly.start()
        longest, served = 0.0, 0
        while costly.is_alive():
            began = time.monotonic()
            api.write(others, "quick")
            longest, served = max(longest, time.monotonic() - began), served + 1
        costly.join()
    assert served > 5
    assert longest < 1.0


def test_records_of_a_client_that_does_not_wait_are_written(api: Api, rest: RunningRest, new_topic: NewTopic) -> None:
    topic = new_topic()
    where = urlsplit(rest.url)
    body = b'{"records":[{"value":1}]}'
    head = (
        f"POST /topics/{topic} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {embedded('json')}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection((where.hostname or "", where.port or 0)) as gone:
        gone.sendall(head.encode() + body)
    deadline = time.monotonic() + 20
    while api.client.get(f"/topics/{topic}/partitions/0/offsets").json()["end_offset"] == 0:
        assert time.monotonic() < deadline
    api.write(topic, 2)


def test_a_full_buffer_makes_requests_wait_and_then_refuses_them(own_broker: Broker) -> None:
    values = values_for(
        own_broker,
        producer_buffer_memory="65536",
        producer_max_block_ms="700",
        producer_delivery_timeout_ms="60000",
        kaspar_producer_waiting_requests="1",
    )
    body = {"records": [{"value": KILOBYTE} for _ in range(50)]}
    with RunningRest(values) as rest, httpx.Client(base_url=rest.url, timeout=60) as client:
        api = Api(client)
        assert api.produce("full", body).status_code == 200
        os.kill(own_broker.pid, signal.SIGSTOP)
        responses: list[httpx.Response] = []
        senders = [
            threading.Thread(target=lambda: responses.append(Api(client).produce("full", body))) for _ in range(6)
        ]
        try:
            for sender in senders:
                sender.start()
            deadline = time.monotonic() + 20
            while not any(response.status_code == 429 for response in list(responses)):
                assert time.monotonic() < deadline
            refused = next(response for response in responses if response.status_code == 429)
            assert refused.json()["error_code"] == 42901
            assert client.get("/").status_code == 200
            time.sleep(1)  # longer than max.block.ms
        finally:
            os.kill(own_broker.pid, signal.SIGCONT)
        for sender in senders:
            sender.join(30)
            assert not sender.is_alive()
        accepted = [each for each in responses if each.status_code == 200]
        outcomes = [outcome for response in accepted for outcome in response.json()["offsets"]]
        failed = [each for each in outcomes if each["error_code"] is not None]
        assert failed
        assert all(each["error_code"] == 2 for each in failed)
        text = "Failed to allocate memory within the configured max blocking time 700 ms."
        assert {each["error"] for each in failed} == {text}
        written = client.get("/topics/full/partitions/0/offsets").json()["end_offset"]
        assert written == 50 + len(outcomes) - len(failed)
        api.write("full", "and on", name="json")


def test_bodies_beyond_the_memory_for_them_are_refused_until_there_is_room(own_broker: Broker) -> None:
    values = values_for(own_broker, kaspar_producer_request_bytes="100000")
    body = json.dumps({"records": [{"value": KILOBYTE}] * 50}).encode()
    with RunningRest(values) as rest, httpx.Client(base_url=rest.url, timeout=60) as client:
        api, where = Api(client), urlsplit(rest.url)
        head = f"POST /topics/room HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        with socket.create_connection((where.hostname or "", where.port or 0)) as slow:
            slow.sendall(head.encode())  # and nothing of the body
            deadline = time.monotonic() + 20
            while (refused := api.produce("room", body)).status_code == 200:
                assert time.monotonic() < deadline
            assert (refused.status_code, refused.json()["error_code"]) == (429, 42901)
            api.produce("room", {"records": [{"value": KILOBYTE}]})
        deadline = time.monotonic() + 20
        while api.produce("room", body).status_code != 200:
            assert time.monotonic() < deadline


def test_no_acknowledged_record_is_lost_when_the_broker_dies(own_broker: Broker) -> None:
    """Apart from that, requests that are under way end with outcomes, and later ones are served again."""
    acknowledged: dict[int, int] = {}
    stop = threading.Event()

    def produce(client: httpx.Client, first: int) -> None:
        number = first
        while not stop.is_set():
            numbers = range(number, number + 10)
            response = Api(client).produce("kept", {"records": [{"value": each} for each in numbers]}, "json")
            if response.status_code == 200:
                for each, outcome in zip(numbers, response.json()["offsets"], strict=True):
                    if outcome["error_code"] is None:
                        acknowledged[each] = outcome["offset"]
            number += 10

    values = values_for(own_broker, producer_acks="all", client_default_api_timeout_ms="1000")
    with RunningRest(values) as rest, httpx.Client(base_url=rest.url, timeout=60) as client:
        Api(client).write("kept", -1)
        senders = [threading.Thread(target=produce, args=(client, first)) for first in (0, 1_000_000)]
        for sender in senders:
            sender.start()
        try:
            for _ in range(2):
                _wait_for_more(acknowledged)
                own_broker.kill()
                own_broker.start()
            _wait_for_more(acknowledged)
        finally:
            stop.set()
            for sender in senders:
                sender.join(60)
        end = client.get("/topics/kept/partitions/0/offsets").json()["end_offset"]
    stored = {each.offset(): int(each.value()) for each in records_of(own_broker.bootstrap_servers, "kept", end)}
    assert {number: stored.get(offset) for number, offset in acknowledged.items()} == {
        number: number for number in acknowledged
    }


def test_a_topic_is_created_by_the_first_record_where_brokers_allow_it(own_broker: Broker) -> None:
    with RunningRest(values_for(own_broker)) as rest, httpx.Client(base_url=rest.url, timeout=60) as client:
        Api(client).write("created", 1)
        assert client.get("/topics").json() == ["created"]


def test_a_topic_that_was_deleted_and_created_again_is_written_to(own_broker: Broker) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    with RunningRest(values_for(own_broker)) as rest, httpx.Client(base_url=rest.url, timeout=60) as client:
        admin = AdminClient({"bootstrap.servers": own_broker.bootstrap_servers, "log_level": 0})
        Api(client).write("again", 1)
        admin.delete_topics(["again"])["again"].result()
        admin.create_topics([NewTopic("again", num_partitions=2)])["again"].result()
        body = {"records": [{"value": 2, "partition": 0}, {"value": 3, "partition": 1}, {"value": 4, "partition": 2}]}
        first, second, third = Api(client).produce("again", body, "json").json()["offsets"]
        assert (first["offset"], second["offset"], third["error_code"]) == (0, 0, 2)


def _wait_for_more(acknowledged: dict[int, int]) -> None:
    count = len(acknowledged) + 200
    deadline = time.monotonic() + 30
    while len(acknowledged) < count:
        assert time.monotonic() < deadline
        time.sleep(0.01)
