"""Every error code of version 2, by a request that gets it."""

import base64
import importlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from kaspar.rest import errors
from kaspar.rest.errors import ErrorKind
from kaspar.rest.v3 import errors as v3_errors
from tests.integration.rest.api import V2, Api, embedded
from tests.integration.rest.conftest import NewTopic
from tests.integration.rest.serving import RunningRest
from tests.integration.rest.test_produce import AVRO
from tests.peers.wire import free_port

INSTANCE = "/consumers/errors/instances/one"
X = base64.b64encode(b"x").decode()


@pytest.fixture(scope="module")
def topic(new_topic: NewTopic) -> str:
    return new_topic()


@pytest.fixture(scope="module")
def module_api(rest: RunningRest) -> Iterator[Api]:
    with httpx.Client(base_url=rest.url, timeout=30) as client:
        api = Api(client)
        assert api.create("errors", name="one", format="json").status_code == 200
        yield api
        client.delete(INSTANCE)


@dataclass(frozen=True)
class Case:
    request: str
    """The method and the path; `TOPIC` stands for one that exists."""
    status: int
    code: int
    message: str
    """What the message begins with."""
    body: Any = None
    type: str | None = None
    headers: dict[str, str] = field(default_factory=dict)


def produce(name: str, status: int, code: int, message: str, body: Any, path: str = "/topics/TOPIC") -> Case:
    return Case(f"POST {path}", status, code, message, body, embedded(name))


def consumer(path: str, status: int, code: int, message: str, body: Any) -> Case:
    return Case(f"POST {INSTANCE}{path}", status, code, message, body, V2)


def create(status: int, code: int, message: str, **options: Any) -> Case:
    body = {name.replace("_", "."): value for name, value in options.items()}
    return Case("POST /consumers/errors", status, code, message, body, V2)


ONE = {"records": [{"value": X}]}
CASES = [
    Case("GET /unknown", 404, 404, "HTTP 404 Not Found"),
    Case("GET /topics/TOPIC/partitions/x", 404, 404, "HTTP 404 Not Found"),
    Case("GET /topics/TOPIC/partitions/-1", 404, 404, "HTTP 404 Not Found"),
    Case("PATCH /topics", 405, 405, "HTTP 405 Method Not Allowed"),
    Case("GET /topics", 406, 406, "HTTP 406 Not Acceptable", headers={"accept": "text/html"}),
    Case("GET /topics/none", 404, 40401, "Topic not found."),
    Case("GET /topics/none/partitions", 404, 40401, "Topic not found."),
    Case("GET /topics/none/partitions/0", 404, 40401, "Topic not found."),
    Case("GET /topics/none/partitions/0/offsets", 404, 40401, "Topic not found."),
    Case("GET /topics/TOPIC/partitions/7", 404, 40402, "Partition not found."),
    Case("GET /topics/TOPIC/partitions/7/offsets", 404, 40402, "Partition not found."),
    # Producing
    Case("POST /topics/TOPIC", 415, 415, "HTTP 415 Unsupported Media Type", ONE, "text/plain"),
    Case("POST /topics/TOPIC", 415, 415, "HTTP 415", ONE, "application/vnd.kafka.binary.v3+json"),
    Case("POST /topics/TOPIC", 406, 406, "HTTP 406", ONE, embedded("binary"), {"accept": "image/png"}),
    produce("binary", 404, 40402, "Partition not found.", ONE, "/topics/TOPIC/partitions/7"),
    produce("binary", 404, 40401, "Topic not found.", ONE, "/topics/none/partitions/0"),
    produce(
        "binary", 400, 40002, "The request attempted to perform an operation on an invalid topic.", ONE, "/topics/a b"
    ),
    produce("binary", 400, 400, "JSON is malformed", b'{"records": [{"value": NaN}]}'),
    produce("binary", 400, 400, "The request body is not valid UTF-8.", b'{"records": [{"value": "\xff"}]}'),
    produce("json", 400, 400, "maximum recursion depth", b'{"records": [{"value": ' + b"[" * 100_000 + b"}]}"),
    produce("binary", 400, 400, "Input data was truncated", b""),
    produce("binary", 400, 400, "Expected `array | null`, got `str`", {"records": "many"}),
    produce("binary", 400, 400, "Expected `object`, got `str`", {"records": ["one"]}),
    produce("binary", 400, 400, "Expected `int | null`", {"records": [{"value": X, "partition": "a"}]}),
    produce(
        "binary", 400, 400, 'data="no base64" is not a valid base64 string.', {"records": [{"value": "no base64"}]}
    ),
    produce("binary", 400, 400, 'data={"a":1} is not a base64 string.', {"records": [{"value": {"a": 1}}]}),
    produce("binary", 422, 422, "records must not be empty", {"records": []}),
    produce("json", 422, 422, "records must not be empty", {}),
    produce("binary", 422, 422, "partition must be greater", {"records": [{"value": X, "partition": -2}]}),
    produce("json", 422, 422, "Unrecognized field: valur", {"records": [{"valur": 1}]}),
    produce("json", 422, 422, "Unrecognized field: foo", {"foo": 1}),
    produce("avro", 422, 42201, "Request includes keys but does not include key schema", {"records": [{"key": 1}]}),
    produce(
        "avro", 422, 42202, "Request includes values but does not include value schema", {"records": [{"value": 1}]}
    ),
    produce(
        "avro",
        422,
        42203,
        "Conversion of JSON to Object failed: ",
        {"value_schema": AVRO, "records": [{"value": {"amount": "much"}}]},
    ),
    produce("avro", 422, 42205, "Invalid schema: ", {"value_schema": '{"type":"no"}', "records": [{"value": 1}]}),
    produce(
        "avro",
        422,
        42207,
        "Error serializing message. Error when fetching schema by id. schemaId = 6666",
        {"value_schema_id": 6666, "records": [{"value": 1}]},
    ),
    # Consuming
    create(422, 422, "Invalid format type.", format="csv"),
    create(422, 40001, "Invalid consumer configuration. It does not abide by the constraints: ", fetch_min_bytes=-10),
    create(422, 42204, "Invalid consumer configuration: ", auto_offset_reset="now"),
    create(422, 42204, "Invalid consumer configuration: ", auto_commit_enable="perhaps"),
    create(422, 42204, "Invalid consumer configuration: ", consumer_request_timeout_ms=-1),
    create(409, 40902, "Consumer with specified consumer ID already exists in the specified", name="one"),
    create(422, 422, "Unrecognized field: formet", formet="json"),
    Case("POST /consumers/errors", 415, 415, "HTTP 415", {}, "text/plain"),
    Case("DELETE /consumers/errors/instances/none", 404, 40403, "Consumer instance not found."),
    Case("GET /consumers/none/instances/one/records", 404, 40403, "Consumer instance not found."),
    Case(f"GET {INSTANCE}/records", 406, 40601, "The requested embedded", headers={"accept": embedded("binary")}),
    Case(f"GET {INSTANCE}/records", 406, 406, "HTTP 406", headers={"accept": "text/html"}),
    Case(f"GET {INSTANCE}/records", 409, 40903, "Illegal state: Consumer is not subscribed to any topics"),
    Case(f"GET {INSTANCE}/records?timeout=soon", 404, 404, "HTTP 404 Not Found"),
    Case(f"GET {INSTANCE}/offsets", 404, 40402, "Partition not found."),
    consumer(
        "/positions",
        409,
        40903,
        "Illegal state: No current assignment for partition none-0",
        {"offsets": [{"topic": "none", "partition": 0, "offset": 1}]},
    ),
    consumer("/positions/beginning", 409, 40903, "Illegal state: ", {"partitions": [{"topic": "x", "partition": 0}]}),
    consumer("/positions/end", 409, 40903, "Illegal state: ", {"partitions": [{"topic": "x", "partition": 0}]}),
    consumer("/positions", 422, 422, "offsets must not be null", {}),
    consumer(
        "/positions", 400, 400, "Expected `int` >= 0", {"offsets": [{"topic": "x", "partition": 0, "offset": -1}]}
    ),
    consumer("/assignments", 422, 422, "partitions must not be null", {}),
    consumer("/assignments", 422, 422, "The request body must not be empty", b""),
    consumer("/assignments", 400, 400, "Object missing required field `partition`", {"partitions": [{"topic": "x"}]}),
    consumer("/subscription", 400, 400, "Expected `array | null`, got `str`", {"topics": "x"}),
    consumer("/subscription", 422, 422, "topic_pattern is not a valid regular expression: ", {"topic_pattern": "("}),
]


ELSEWHERE = {
    413: "test_errors.test_a_body_beyond_the_limit_is_refused",
    40101: "test_identities.test_credentials_that_the_broker_does_not_accept_are_reported",
    40301: "test_identities.test_a_schema_is_registered_for_those_who_may_write_the_topic",
    40801: "test_errors.test_a_registry_that_cannot_be_reached_is_reported",
    42206: "test_v3_acls.test_an_incomplete_acl_is_refused",
    42208: "test_v3_records.test_batches_that_are_refused",
    42901: "test_consumers.test_instances_are_limited_in_number",
    50002: "test_v3_records.test_a_refused_record_does_not_fail_its_neighbours",
    50003: "test_errors.test_requests_without_a_broker_end_with_an_error_that_passes",
}
"""Codes that need more than a request to the shared proxy, or are of version 3, with the tests that get them."""
OF_BROKERS_ONLY = {50302}
"""Codes of brokers that none sends to a client of the proxy (tests/unit/rest/test_errors.py)."""


def test_every_code_has_a_case_or_a_test_of_its_own() -> None:
    declared = {
        each.code for module in (errors, v3_errors) for each in vars(module).values() if isinstance(each, ErrorKind)
    }
    assert {case.code for case in CASES} | ELSEWHERE.keys() | OF_BROKERS_ONLY == declared
    for test in ELSEWHERE.values():
        module, _, name = test.partition(".")
        assert hasattr(importlib.import_module(f"tests.integration.rest.{module}"), name), test


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.code} {case.request}")
def test_errors_have_a_status_a_code_and_a_message(module_api: Api, topic: str, case: Case) -> None:
    method, path = case.request.replace("TOPIC", topic).split(" ", 1)
    headers = dict(case.headers)
    if case.type is not None:
        headers["content-type"] = case.type
    if isinstance(case.body, bytes) or case.body is None:
        response = module_api.client.request(method, path, content=case.body, headers=headers)
    else:
        response = module_api.client.request(method, path, json=case.body, headers=headers)
    found = response.json()
    assert (response.status_code, found["error_code"]) == (case.status, case.code), found
    assert found["message"].startswith(case.message), found
    assert set(found) == {"error_code", "message"}


def test_a_body_beyond_the_limit_is_refused(api: Api, topic: str) -> None:
    body = b'{"records": [{"value": "' + b"A" * 3_000_000 + b'"}]}'
    refused = api.produce(topic, body)
    assert (refused.status_code, refused.json()["error_code"]) == (413, 413)


def test_an_id_of_another_subject_or_another_format_is_refused(api: Api, new_topic: NewTopic) -> None:
    first, second = new_topic(), new_topic()
    body = {"value_schema": AVRO, "records": [{"value": {"amount": 1}}]}
    schema_id = api.produce(first, body, "avro").json()["value_schema_id"]
    by_id = {"value_schema_id": schema_id, "records": [{"value": {"amount": 1}}]}
    other_subject = api.produce(second, by_id, "avro")
    assert (other_subject.status_code, other_subject.json()["error_code"]) == (422, 42207)
    assert f"subject = {second}-value" in other_subject.json()["message"]
    other_format = api.produce(first, by_id, "protobuf")
    assert (other_format.status_code, other_format.json()["error_code"]) == (422, 42205)


def test_a_registry_that_cannot_be_reached_is_reported(rest: RunningRest, topic: str) -> None:
    values = {
        "bootstrap.servers": rest.server.settings.bootstrap_servers,
        "schema.registry.url": f"http://127.0.0.1:{free_port()}",
        "schema.registry.max.retries": "0",
    }
    with RunningRest(values) as alone, httpx.Client(base_url=alone.url, timeout=30) as client:
        body = {"value_schema": AVRO, "records": [{"value": {"amount": 1}}]}
        refused = Api(client).produce(topic, body, "avro")
        assert (refused.status_code, refused.json()["error_code"]) == (408, 40801)
        assert refused.json()["message"].startswith("Error when registering schema. format = AVRO")


def test_requests_without_a_broker_end_with_an_error_that_passes() -> None:
    values = {"bootstrap.servers": f"127.0.0.1:{free_port()}", "client.default.api.timeout.ms": "500"}
    with RunningRest(values) as alone, httpx.Client(base_url=alone.url, timeout=30) as client:
        for response in (client.get("/topics"), Api(client).produce("topic", ONE)):
            assert (response.status_code, response.json()["error_code"]) == (500, 50003), response.text
        started = time.monotonic()
    assert time.monotonic() - started < 10  # nothing of a broker that is away holds the proxy
