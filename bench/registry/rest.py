"""Records produced over HTTP, with values of 100 bytes. After each run, the topic must contain all of them.

Each run has its own topic, which is not deleted: wrk ends with requests under way, and one of these would recreate a
deleted topic.
"""

import base64
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import httpx

from bench.programs import LoadError
from bench.registry import wrk
from bench.registry.bench import RegistryBench
from bench.registry.case import OURS, Program
from bench.registry.reads import CONNECTIONS
from bench.rows import Better, Row
from kaspar.base.ids import TopicPartition
from kaspar.client import Client
from kaspar.client.cluster import LATEST_TIMESTAMP
from kaspar.client.offsets import list_offsets

_SECTION: Final = f"REST proxy, records of 100 bytes, {CONNECTIONS} connections"
_SECONDS: Final = 3.0
_TIMEOUT_S: Final = 60.0
_STREAMED: Final = 100_000
_TEXT: Final = "x" * 100
_BYTES: Final = base64.b64encode(_TEXT.encode()).decode()

PathOf = Callable[[str, str], str]
"""Takes the proxy's URL and a topic, and returns the path to which the topic's records are sent."""


class Produce:
    """Requests over several connections, each with some records."""

    sides = (OURS,)

    def __init__(self, name: str, title: str, content_type: str, body: Mapping[str, Any], path: PathOf) -> None:
        self.name = name
        self.rows: tuple[Row, ...] = (Row(name, title, _SECTION, "records/s", Better.MORE),)
        self._content_type = content_type
        self._body = json.dumps(body)
        self._batch = len(body.get("records", [body]))
        self._path = path

    def measure(self, bench: RegistryBench, side: Program) -> Mapping[str, float]:
        server = bench.filled(side).server
        body = bench.folder / f"{self.name}.json"
        body.write_text(self._body)
        topic = bench.topics.create(1)
        url = f"{server.rest_url}{self._path(server.rest_url, topic)}"
        settings = {"BODY": str(body), "CONTENT_TYPE": self._content_type}
        load = wrk.run(url, "posts", connections=CONNECTIONS, seconds=_SECONDS * bench.scale, settings=settings)
        _check_count(bench, topic, load.requests * self._batch)
        return {self.name: load.per_second * self._batch}


class Stream:
    """One request that stays open: it sends records of version 3 one by one, and receives a report for each."""

    name = "rest_v3_stream"
    sides = (OURS,)

    def __init__(self) -> None:
        title = "version 3, JSON, one streaming request"
        self.rows: tuple[Row, ...] = (Row(self.name, title, _SECTION, "records/s", Better.MORE),)

    def measure(self, bench: RegistryBench, side: Program) -> Mapping[str, float]:
        server = bench.filled(side).server
        count = int(_STREAMED * bench.scale)
        topic = bench.topics.create(1)
        path = _v3_path(server.rest_url, topic)
        with _connected(server.rest_port) as connection:
            began = time.perf_counter()
            sender = threading.Thread(target=_send_stream, args=(connection, path, count))
            sender.start()
            reports = _count_reports(connection)
            sender.join()
            seconds = time.perf_counter() - began
        if reports != count:
            raise LoadError(f"{count} records were sent, and {reports} reports came back")
        _check_count(bench, topic, count)
        return {self.name: count / seconds}


def _v2_path(url: str, topic: str) -> str:
    del url
    return f"/topics/{topic}"


def _v3_path(url: str, topic: str) -> str:
    (cluster,) = httpx.get(f"{url}/v3/clusters", trust_env=False, timeout=_TIMEOUT_S).json()["data"]
    return f"/v3/clusters/{cluster['cluster_id']}/topics/{topic}/records"


def _v3_record() -> dict[str, Any]:
    return {"value": {"type": "JSON", "data": _TEXT}}


@contextmanager
def _connected(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), timeout=_TIMEOUT_S) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield connection


def _send_stream(connection: socket.socket, path: str, count: int) -> None:
    head = ("Host: localhost", "Content-Type: application/json", "Transfer-Encoding: chunked")
    connection.sendall("\r\n".join((f"POST {path} HTTP/1.1", *head, "", "")).encode())
    record = json.dumps(_v3_record()).encode() + b"\n"
    chunk = b"%x\r\n%s\r\n" % (len(record), record)
    for sent in range(0, count, 100):
        connection.sendall(chunk * min(100, count - sent))
    connection.sendall(b"0\r\n\r\n")


def _count_reports(connection: socket.socket) -> int:
    """Count the reports until the response ends. Each contains its offset once."""
    reports, tail = 0, b""
    while not tail.endswith(b"\r\n0\r\n\r\n"):
        received = connection.recv(1 << 20)
        if not received:
            raise LoadError("the proxy has closed the connection")
        data = tail + received
        reports += data.count(b'"error_code":200')
        tail = data[-15:]
    return reports


def _check_count(bench: RegistryBench, topic: str, count: int) -> None:
    """Check that the topic has at least this many records. wrk ends with requests under way, which may add more."""
    partition = TopicPartition(topic, 0)
    with Client(bench.broker.bootstrap) as client:
        found = list_offsets(client, {partition: LATEST_TIMESTAMP})[partition].offset
    if found < count:
        raise LoadError(f"{count} records were acknowledged, and the topic has {found}")


def rest_cases() -> list[Produce | Stream]:
    def v2(form: str, value: str, title: str, batch: int) -> Produce:
        content_type = f"application/vnd.kafka.{form}.v2+json"
        records = "one record" if batch == 1 else f"{batch} records"
        body = {"records": [{"value": value}] * batch}
        return Produce(f"rest_{form}_{batch}", f"version 2, {title}, {records} a request", content_type, body, _v2_path)

    title = "version 3, JSON, one record a request"
    return [
        *(v2("binary", _BYTES, "bytes", batch) for batch in (1, 100)),
        *(v2("json", _TEXT, "JSON", batch) for batch in (1, 100)),
        Produce("rest_v3_1", title, "application/json", _v3_record(), _v3_path),
        Stream(),
    ]
