"""A client of version 3, as short as the tests want it."""

import json
import time
from typing import Any

import httpx

WAIT_S = 20.0


class V3:
    """`base` is the URL of the cluster."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client
        (cluster,) = client.get("/v3/clusters").json()["data"]
        self.cluster_id: str = cluster["cluster_id"]
        self.base: str = cluster["metadata"]["self"]

    def request(self, method: str, path: str, body: Any = None, **parameters: Any) -> httpx.Response:
        """`body` is JSON as bytes, or what becomes it."""
        content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        headers = {} if body is None else {"content-type": "application/json"}
        return self.client.request(method, self.base + path, content=content, headers=headers, params=parameters)

    def get(self, path: str, **parameters: Any) -> dict[str, Any]:
        response = self.request("GET", path, **parameters)
        assert response.status_code == 200, response.text
        found: dict[str, Any] = response.json()
        return found

    def create_topic(self, name: str, partitions: int = 1, **fields: Any) -> str:
        response = self.request("POST", "/topics", {"topic_name": name, "partitions_count": partitions, **fields})
        assert response.status_code == 201, response.text
        self.wait_for_topic(name)
        return name

    def wait_for_topic(self, name: str) -> None:
        """Apache Kafka's brokers know a topic a moment after the response."""
        deadline = time.monotonic() + WAIT_S
        while self.request("GET", f"/topics/{name}").status_code == 404:
            assert time.monotonic() < deadline, name

    def produce(self, topic: str, *records: Any) -> list[dict[str, Any]]:
        """The responses to the records, which are JSON as bytes or what becomes it."""
        body = b"\n".join(each if isinstance(each, bytes) else json.dumps(each).encode() for each in records)
        response = self.request("POST", f"/topics/{topic}/records", body)
        assert response.status_code == 200, response.text
        return answers(response.content)


def answers(body: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in body.split(b"\r\n") if line]
