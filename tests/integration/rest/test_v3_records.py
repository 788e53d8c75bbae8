"""Records through version 3: what arrives in the topic, and what responses say of each; one by one, in streams over
real sockets, and in batches."""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.integration.rest.serving import RunningRest
from tests.integration.rest.v3 import V3, WAIT_S, answers
from tests.peers.process import BrokerProcess

AVRO = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "n", "type": "int"}]})


@pytest.fixture(scope="module")
def v3(rest: RunningRest) -> Iterator[V3]:
    with httpx.Client(base_url=rest.url, timeout=30) as client:
        yield V3(client)


def records_of(broker: BrokerProcess, topic: str, count: int, partition: int = 0) -> list[Any]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "none", "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(topic, partition, 0)])
        return consumer.consume(count, timeout=20)
    finally:
        consumer.close()


def json_record(value: Any) -> dict[str, Any]:
    return {"value": {"type": "JSON", "data": value}}


# --- One by one -------------------------------------------------------------------------------------------------------


def test_a_record_with_everything(v3: V3, rest_broker: BrokerProcess) -> None:
    topic = v3.create_topic("v3-everything", 2)
    record = {
        "partition_id": 1,
        "headers": [{"name": "h", "value": "AP8="}, {"name": "h", "value": None}],
        "key": {"type": "BINARY", "data": "a2V5"},
        "value": {"type": "STRING", "data": "é"},
        "timestamp": "2021-02-05T19:14:42.5Z",
    }
    (answer,) = v3.produce(topic, record)
    assert answer == {
        "error_code": 200,
        "cluster_id": v3.cluster_id,
        "topic_name": topic,
        "partition_id": 1,
        "offset": 0,
        "timestamp": "2021-02-05T19:14:42.500Z",
        "key": {"type": "BINARY", "size": 3},
        "value": {"type": "STRING", "size": 2},
    }
    (found,) = records_of(rest_broker, topic, 1, partition=1)
    assert (found.key(), found.value(), found.timestamp()[1]) == (b"key", "é".encode(), 1_612_552_482_500)
    assert found.headers() == [("h", b"\x00\xff"), ("h", None)]


def test_a_record_without_anything(v3: V3, rest_broker: BrokerProcess) -> None:
    topic = v3.create_topic("v3-empty")
    (answer,) = v3.produce(topic, {})
    assert set(answer) == {"error_code", "cluster_id", "topic_name", "partition_id", "offset", "timestamp"}
    (found,) = records_of(rest_broker, topic, 1)
    assert (found.key(), found.value()) == (None, None)


def test_json_is_written_as_it_was_sent_without_white_space(v3: V3, rest_broker: BrokerProcess) -> None:
    topic = v3.create_topic("v3-json")
    v3.produce(topic, b'{"value":{"type":"JSON","data":{"n" : 123456789012345678901234567890, "f": 1.10}}}')
    assert records_of(rest_broker, topic, 1)[0].value() == b'{"n":123456789012345678901234567890,"f":1.10}'


def test_schemas_are_registered_and_named_by_id_version_or_not_at_all(v3: V3, rest_broker: BrokerProcess) -> None:
    topic = v3.create_topic("v3-schemas")
    (first,) = v3.produce(topic, {"value": {"type": "AVRO", "schema": AVRO, "data": {"n": 1}}})
    written = first["value"]
    assert {**written, "schema_id": 0} == {
        "type": "AVRO",
        "subject": f"{topic}-value",
        "schema_id": 0,
        "schema_version": 1,
        "size": 6,
    }
    others = [{"schema_id": written["schema_id"]}, {"schema_version": 1}, {"subject": f"{topic}-value"}, {}]
    found = v3.produce(topic, *({"value": {**each, "data": {"n": 1}}} for each in others))
    assert [each["value"] for each in found] == [written] * 4
    values = {each.value() for each in records_of(rest_broker, topic, 5)}
    assert values == {b"\x00" + written["schema_id"].to_bytes(4) + b"\x02"}


# --- Streams ----------------------------------------------------------------------------------------------------------


class Connection:
    """A request whose body is open-ended, over a plain socket."""

    def __init__(self, v3: V3, topic: str) -> None:
        url = httpx.URL(f"{v3.base}/topics/{topic}/records")
        self.socket = socket.create_connection((url.host, url.port or 80), timeout=WAIT_S)
        head = f"POST {url.path} HTTP/1.1\r\nhost: {url.host}\r\ncontent-type: application/json\r\n"
        self.socket.sendall(f"{head}transfer-encoding: chunked\r\n\r\n".encode())
        self._file = self.socket.makefile("rb")
        self._has_head = False
        self._left = b""

    def send(self, data: bytes) -> None:
        self.socket.sendall(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def finish(self) -> None:
        self.socket.sendall(b"0\r\n\r\n")

    def answers(self, count: int) -> list[dict[str, Any]]:
        """The next responses."""
        if not self._has_head:
            self._has_head = True
            assert self._file.readline() == b"HTTP/1.1 200 OK\r\n"
            while self._file.readline() != b"\r\n":
                pass
        found: list[dict[str, Any]] = []
        while len(found) < count:
            chunk = self._chunk()
            assert chunk, f"the response ended after {found}"
            assert chunk.endswith(b"\r\n")
            found += answers(chunk)
        assert len(found) == count
        return found

    def is_at_end(self) -> bool:
        return self._chunk() == b""

    def _chunk(self) -> bytes:
        size = int(self._file.readline(), 16)
        data = self._file.read(size)
        assert self._file.readline() == b"\r\n"
        return data


@contextmanager
def connection(v3: V3, topic: str) -> Iterator[Connection]:
    opened = Connection(v3, topic)
    try:
        yield opened
    finally:
        opened.socket.close()


def test_each_record_is_answered_while_the_request_goes_on(v3: V3) -> None:
    topic = v3.create_topic("v3-stream")
    with connection(v3, topic) as stream:
        for number in range(3):
            stream.send(json.dumps(json_record(number)).encode())
            (answer,) = stream.answers(1)
            assert (answer["error_code"], answer["offset"]) == (200, number)
        stream.send(b'{"value":{"type":"JSON",')
        stream.send(b'"data":3}}{}')
        assert [each["offset"] for each in stream.answers(2)] == [3, 4]
        stream.finish()
        assert stream.is_at_end()


def test_many_records_keep_their_order(v3: V3, rest_broker: BrokerProcess) -> None:
    topic = v3.create_topic("v3-many")
    found = v3.produce(topic, *map(json_record, range(5000)))
    assert [each["offset"] for each in found] == list(range(5000))
    assert [int(each.value()) for each in records_of(rest_broker, topic, 5000)] == list(range(5000))


def test_a_refused_record_does_not_fail_its_neighbours(v3: V3) -> None:
    topic = v3.create_topic("v3-refused")
    large = json_record("x" * 1_100_000)
    found = v3.produce(
        topic,
        json_record(1),
        {"value": {"type": "BINARY", "data": "***"}},
        {"colour": "red"},
        large,
        {"partition_id": 9},
        {"partition_id": -1},
        [],
        {"value": {"data": 1}},
        json_record(2),
    )
    assert [each["error_code"] for each in found] == [200, 400, 422, 50002, 40403, 40402, 400, 42207, 200]
    assert [each.get("offset") for each in found if each["error_code"] == 200] == [0, 1]
    assert found[2]["message"] == "Unrecognized field: colour"
    assert "larger than 1048576" in found[3]["message"]


def test_what_is_not_json_ends_the_stream_and_what_came_before_is_written(v3: V3) -> None:
    topic = v3.create_topic("v3-malformed")
    with connection(v3, topic) as stream:
        stream.send(b'{} {"value":}')
        good, bad = stream.answers(2)
        assert (good["error_code"], bad["error_code"]) == (200, 400)
        assert bad["message"].startswith("Bad Request: Error processing JSON: ")
        assert stream.is_at_end()
    assert v3.get(f"/topics/{topic}/partitions/0/offset")["latest_offset"] == 1


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"a":' * 100_000, b"}", b'"text"', b"\x00\x01"])
def test_hostile_bodies_are_refused(v3: V3, body: bytes) -> None:
    topic = "v3-hostile"
    v3.request("POST", "/topics", {"topic_name": topic})
    v3.wait_for_topic(topic)
    (answer,) = v3.produce(topic, body)
    assert answer["error_code"] == 400


def test_a_record_larger_than_a_body_may_be_is_refused_and_a_stream_may_be_larger(v3: V3) -> None:
    topic = v3.create_topic("v3-large")
    half = json_record("x" * 900_000)
    assert [each["error_code"] for each in v3.produce(topic, half, half, half, half)] == [200] * 4
    (answer,) = v3.produce(topic, json_record("x" * 3_100_000))
    assert answer["error_code"] == 413


def test_a_client_that_vanishes_leaves_what_it_sent_and_disturbs_nobody(v3: V3) -> None:
    topic = v3.create_topic("v3-vanished")
    with connection(v3, topic) as stream, connection(v3, topic) as other:
        stream.send(b"{}")
        stream.answers(1)
        stream.send(b'{}{"value":')
        stream.socket.close()
        deadline = time.monotonic() + WAIT_S
        while v3.get(f"/topics/{topic}/partitions/0/offset")["latest_offset"] < 2:
            assert time.monotonic() < deadline
        other.send(b"{}")
        assert other.answers(1)[0]["offset"] == 2


def test_a_client_that_does_not_read_is_not_read_from(v3: V3) -> None:
    """Its socket fills up, and others are served meanwhile."""
    topic = v3.create_topic("v3-slow")
    with connection(v3, topic) as stream:
        stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stream.socket.settimeout(0.5)
        with pytest.raises(TimeoutError):
            send_many(stream, b"{}" * 20_000, 200)
        assert v3.produce(v3.create_topic("v3-quick"), {})[0]["error_code"] == 200


def send_many(stream: Connection, data: bytes, times: int) -> None:
    for _ in range(times):
        stream.send(data)


# --- Batches ----------------------------------------------------------------------------------------------------------


def test_a_batch_says_of_each_entry_what_became_of_it(v3: V3) -> None:
    topic = v3.create_topic("v3-batch")
    entries = [
        {"id": "first", **json_record(1)},
        {"id": "2", "value": {"type": "BINARY", "data": 1}},
        {"id": "a_b-c", "partition_id": 9},
        {"id": "last"},
    ]
    response = v3.request("POST", f"/topics/{topic}/records:batch", {"entries": entries})
    assert response.status_code == 207
    first, last = response.json()["successes"]
    assert (first["id"], first["offset"], first["value"]) == ("first", 0, {"type": "JSON", "size": 1})
    assert (last["id"], last["offset"], last["topic_name"], last["cluster_id"]) == ("last", 1, topic, v3.cluster_id)
    assert [(each["id"], each["error_code"]) for each in response.json()["failures"]] == [
        ("2", 400),
        ("a_b-c", 40403),
    ]


@pytest.mark.parametrize(
    ("entries", "code", "message"),
    [
        ([], 42208, "Error producing batch. Empty batch."),
        ([{"id": "1"}, {"id": "1"}], 42208, "Error producing batch. Batch entry IDs are not distinct."),
        ([{"id": str(each)} for each in range(11)], 42208, "Error producing batch. Too many entries in batch."),
        ([{"id": 1}], 422, "Batch entry identifier not a valid string."),
        ([{}], 422, "Batch entry identifier not a valid string."),
        ([{"id": "x" * 81}], 422, "Batch entry identifier not a valid string."),
        ([{"id": "a b"}], 422, "Batch entry identifier not a valid string."),
    ],
)
def test_batches_that_are_refused(v3: V3, entries: list[Any], code: int, message: str) -> None:
    v3.request("POST", "/topics", {"topic_name": "v3-no-batch"})
    v3.wait_for_topic("v3-no-batch")
    response = v3.request("POST", "/topics/v3-no-batch/records:batch", {"entries": entries})
    assert (response.status_code, response.json()) == (422, {"error_code": code, "message": message})
