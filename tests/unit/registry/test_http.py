"""What every request passes: content types, bodies, unknown paths and methods, failures."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from kaspar.registry.options import RegistryOptions
from kaspar.web.errors import json_error_form
from kaspar.web.limits import RequestLimits
from kaspar.web.requests import Gate, LogIn
from tests.unit.registry.memory import MemoryRegistry

V1 = "application/vnd.schemaregistry.v1+json"
STRING = '"string"'


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        (None, V1),
        ("*/*", V1),
        ("application/*", V1),
        (V1, V1),
        ("application/vnd.schemaregistry+json", "application/vnd.schemaregistry+json"),
        ("application/json", "application/json"),
        (f"application/json; q=0.5, {V1}", V1),
        (f"{V1}; q=0.9, application/json; q=0.8", V1),
        (f"{V1};q=0, application/json", "application/json"),
        ("text/html, */*;q=0.1", V1),
    ],
)
def test_response_has_the_type_that_the_client_accepts(
    registry: MemoryRegistry, accept: str | None, content_type: str
) -> None:
    headers = {"accept": accept} if accept is not None else {}
    response = registry.request("GET", "/subjects", headers=headers)
    assert (response.status, response.headers["content-type"]) == (200, content_type)


@pytest.mark.parametrize("accept", ["text/html", "application/xml", f"{V1};q=0"])
def test_other_types_are_not_acceptable(registry: MemoryRegistry, accept: str) -> None:
    response = registry.request("GET", "/subjects", headers={"accept": accept})
    assert response.error == (406, 406, "HTTP 406 Not Acceptable")


@pytest.mark.parametrize(
    "content_type",
    [V1, "application/vnd.schemaregistry+json", "application/json", "application/octet-stream", f"{V1}; charset=utf-8"],
)
def test_accepted_types_of_bodies(registry: MemoryRegistry, content_type: str) -> None:
    body = {"schema": STRING}
    assert registry.request("POST", "/subjects/a/versions", body, headers={"content-type": content_type}).status == 200


def test_body_without_a_type_is_accepted(registry: MemoryRegistry) -> None:
    assert registry.request("POST", "/subjects/a/versions", {"schema": STRING}).status == 200


@pytest.mark.parametrize("content_type", ["text/plain", "application/xml", "application/x-www-form-urlencoded"])
def test_other_types_of_bodies_are_refused(registry: MemoryRegistry, content_type: str) -> None:
    response = registry.request(
        "POST", "/subjects/a/versions", {"schema": STRING}, headers={"content-type": content_type}
    )
    assert response.error == (415, 415, "HTTP 415 Unsupported Media Type")


@pytest.mark.parametrize(
    "target",
    ["/nothing", "/subjects//versions", "/schemas/ids", "/schemas/ids/x", "/subjects/a/versions/1/nothing", "/v1"],
)
def test_unknown_paths_are_404(registry: MemoryRegistry, target: str) -> None:
    assert registry.request("GET", target).error == (404, 404, "HTTP 404 Not Found")


@pytest.mark.parametrize(
    ("method", "target", "allowed"),
    [
        ("PUT", "/subjects", "GET, HEAD"),
        ("POST", "/config", "DELETE, GET, HEAD, PUT"),
        ("PATCH", "/compatibility/subjects/a/versions", "POST"),
    ],
)
def test_methods_that_a_path_does_not_have_are_405(
    registry: MemoryRegistry, method: str, target: str, allowed: str
) -> None:
    response = registry.request(method, target)
    assert response.error == (405, 405, "HTTP 405 Method Not Allowed")
    assert response.headers["allow"] == allowed


def test_slash_at_the_end_does_not_count(registry: MemoryRegistry) -> None:
    registry.register("orders", STRING)
    assert registry.get("/subjects/") == ["orders"]
    assert registry.get("/subjects/orders/versions/") == [1]


def test_head_is_get_without_a_body(registry: MemoryRegistry) -> None:
    response = registry.request("HEAD", "/subjects")
    assert (response.status, response.text) == (200, "")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"null", 422),
        (b"{", 400),
        (b"[]", 400),
        (b'"x"', 400),
        (b'{"schema": {}}', 400),
        (b'{"schema": "\\"int\\"", "version": "x"}', 400),
        (b'{"schema": "\\"int\\"", "references": [{"name": "x"}]}', 400),
        (b'{"schema": "\xff"}', 400),
        (b"[" * 200_000, 400),
        (b'{"schema": "\\ud800"}', 400),
    ],
)
def test_bodies_that_are_no_request_are_refused(registry: MemoryRegistry, body: bytes, status: int) -> None:
    for method, target in [("POST", "/subjects/a/versions"), ("POST", "/subjects/a")]:
        response = registry.request(method, target, content=body)
        assert response.status == status, response.text
        assert set(response.json) == {"error_code", "message"}


def test_unknown_fields_of_a_body_are_ignored(registry: MemoryRegistry) -> None:
    assert registry.register("a", STRING, something={"new": 1})["id"] == 1


def test_body_beyond_the_limit_is_refused() -> None:
    with MemoryRegistry(options=RegistryOptions(max_body_bytes=1_000)) as registry:
        response = registry.request("POST", "/subjects/a/versions", {"schema": " " * 1_000 + STRING})
        assert response.status == 413
        assert registry.register("a", STRING)["id"] == 1


def test_body_that_the_server_refuses_is_no_failure_of_the_registry() -> None:
    """The server in front has limits of its own, and reports them where the body is read."""
    limits = RequestLimits(body_bytes=1_000)
    with MemoryRegistry() as registry:
        gate: Any = Gate(registry.app, log_in=LogIn(), limits=limits, error_form=json_error_form())
        registry.http = httpx.AsyncClient(transport=httpx.ASGITransport(gate), base_url="http://registry")
        response = registry.request("POST", "/subjects/a/versions", {"schema": " " * 1_000 + STRING})
        assert response.error == (413, 413, "The body of the request is larger than 1000 bytes.")
        assert response.headers["content-type"] == V1


def test_large_schema_does_not_stop_others(registry: MemoryRegistry) -> None:
    """It is parsed in another process: the loop serves other requests meanwhile."""
    fields = [{"name": f"f{number}", "type": ["null", "string"], "default": None} for number in range(3_000)]
    body = json.dumps({"schema": json.dumps({"type": "record", "name": "Large", "fields": fields})})

    async def both() -> list[str]:
        finished: list[str] = []

        async def request(name: str, method: str, target: str, content: str | None = None) -> None:
            response = await registry.http.request(method, target, content=content)
            assert response.status_code == 200
            finished.append(name)

        await asyncio.gather(
            request("large", "POST", "/subjects/large/versions", body), request("small", "GET", "/subjects")
        )
        return finished

    assert registry.runner.run(both()) == ["small", "large"]


@pytest.mark.parametrize("query", ["offset=x", "limit=1.5", "offset=99999999999"])
def test_numbers_of_queries_have_to_be_numbers(registry: MemoryRegistry, query: str) -> None:
    assert registry.request("GET", f"/subjects?{query}").status == 404


def test_page_has_the_default_length_if_the_limit_is_too_large() -> None:
    from kaspar.registry.options import SearchLimits

    with MemoryRegistry(options=RegistryOptions(subject_search=SearchLimits(2, 3))) as registry:
        for name in "abcde":
            registry.register(name, STRING)
        assert registry.get("/subjects") == ["a", "b"]
        assert registry.get("/subjects?limit=3") == ["a", "b", "c"]
        assert registry.get("/subjects?limit=4") == ["a", "b"]
        assert registry.get("/subjects?offset=3&limit=3") == ["d", "e"]


def test_bug_is_a_500_and_is_logged(
    registry: MemoryRegistry, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(subject: str) -> None:
        raise ZeroDivisionError

    registry.register("a", STRING)
    monkeypatch.setattr(registry.state, "versions", broken)
    response = registry.request("GET", "/subjects/a/versions/1")
    assert response.error == (500, 500, "Internal Server Error")
    assert "a request failed" in caplog.text


def test_openapi_describes_every_endpoint(registry: MemoryRegistry) -> None:
    from kaspar.registry.api.routing import ALL_ENDPOINTS

    description = registry.get("/openapi.json")
    described = {(method.upper(), path) for path, methods in description["paths"].items() for method in methods}
    assert described == {(endpoint.method, endpoint.path) for endpoint in ALL_ENDPOINTS}
    operations = [each for methods in description["paths"].values() for each in methods.values()]
    assert len({each["operationId"] for each in operations}) == len(operations)
    references = {part.split('"')[0] for part in json.dumps(description).split("#/components/schemas/")[1:]}
    assert references <= set(description["components"]["schemas"])


def test_long_list_is_sent_in_portions_as_it_is_read(registry: MemoryRegistry) -> None:
    """So that a client that reads slowly, or not at all, costs little memory, and nobody else any time."""
    registry.request("PUT", "/config", {"compatibility": "NONE"})
    texts = [json.dumps({"type": "enum", "name": f"E{number}", "symbols": ["A" * 90_000]}) for number in range(4)]
    for number, text in enumerate(texts):
        registry.register(f"s{number:02}", text)
    sent: list[int] = []

    async def send(message: Any) -> None:
        sent.append(len(message.get("body", b"")))

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "method": "GET",
        "path": "/schemas",
        "raw_path": b"/schemas",
        "query_string": b"",
        "headers": [],
    }
    registry.runner.run(registry.app(scope, receive, send))
    assert max(sent) <= 64 * 1024
    assert [each["subject"] for each in registry.get("/schemas")] == [f"s{number:02}" for number in range(4)]
    assert registry.request("GET", "/subjects").headers["content-length"], "a short one is sent at once"
