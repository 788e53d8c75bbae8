"""A client of version 2, as short as the tests want it."""

import time
from typing import Any

import httpx

V2 = "application/vnd.kafka.v2+json"
WAIT_S = 20.0


def embedded(name: str) -> str:
    return f"application/vnd.kafka.{name}.v2+json"


class Instance:
    """A consumer instance, by its base URI."""

    def __init__(self, client: httpx.Client, uri: str, name: str) -> None:
        self._client = client
        self.uri = uri
        self.format = name

    def post(self, path: str, body: Any = None) -> httpx.Response:
        if body is None:
            return self._client.post(self.uri + path)
        return self._client.post(self.uri + path, json=body, headers={"content-type": V2})

    def get(self, path: str, body: Any = None, **parameters: Any) -> httpx.Response:
        if path == "/records":
            headers = {"accept": embedded(self.format)}
            return self._client.get(self.uri + path, params=parameters, headers=headers)
        if body is None:
            return self._client.get(self.uri + path)
        return self._client.request("GET", self.uri + path, json=body, headers={"content-type": V2})

    def delete(self, path: str = "") -> httpx.Response:
        return self._client.delete(self.uri + path)

    def subscribe(self, *topics: str) -> None:
        assert self.post("/subscription", {"topics": topics}).status_code == 204

    def assign(self, *partitions: tuple[str, int]) -> None:
        body = {"partitions": [{"topic": topic, "partition": partition} for topic, partition in partitions]}
        assert self.post("/assignments", body).status_code == 204

    def read(self, count: int) -> list[dict[str, Any]]:
        """Reads until there are so many records."""
        records: list[dict[str, Any]] = []
        deadline = time.monotonic() + WAIT_S
        while len(records) < count:
            assert time.monotonic() < deadline, f"{len(records)} of {count} records"
            response = self.get("/records")
            assert response.status_code == 200, response.text
            records += response.json()
        return records

    def committed(self, topic: str, partition: int = 0) -> list[dict[str, Any]]:
        response = self.get("/offsets", {"partitions": [{"topic": topic, "partition": partition}]})
        assert response.status_code == 200, response.text
        offsets: list[dict[str, Any]] = response.json()["offsets"]
        return offsets


class Api:
    def __init__(self, client: httpx.Client) -> None:
        self.client = client
        self._instances: list[Instance] = []

    def produce(self, topic: str, body: Any, name: str = "binary", partition: int | None = None) -> httpx.Response:
        """`body` is JSON as bytes, or what becomes it."""
        path = f"/topics/{topic}" if partition is None else f"/topics/{topic}/partitions/{partition}"
        headers = {"content-type": embedded(name), "accept": V2}
        if isinstance(body, bytes):
            return self.client.post(path, content=body, headers=headers)
        return self.client.post(path, json=body, headers=headers)

    def write(self, topic: str, *values: Any, name: str = "json") -> None:
        response = self.produce(topic, {"records": [{"value": value} for value in values]}, name)
        assert response.status_code == 200, response.text
        assert all(each["error_code"] is None for each in response.json()["offsets"]), response.text

    def create(self, group: str, **options: Any) -> httpx.Response:
        body = {name.replace("_", "."): value for name, value in options.items()}
        return self.client.post(f"/consumers/{group}", json=body, headers={"content-type": V2})

    def instance(self, group: str, name: str = "json", **options: Any) -> Instance:
        """Reads from the beginning, and responses do not wait for more records than they have."""
        options = {"format": name, "auto_offset_reset": "earliest", "fetch_min_bytes": 0, **options}
        response = self.create(group, **options)
        assert response.status_code == 200, response.text
        instance = Instance(self.client, response.json()["base_uri"], name)
        self._instances.append(instance)
        return instance

    def delete_instances(self) -> None:
        for instance in self._instances:
            instance.delete()
