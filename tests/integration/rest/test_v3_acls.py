"""ACLs through version 3, on a broker that has an authorizer."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.integration.rest.serving import RunningRest
from tests.integration.rest.v3 import V3
from tests.peers.against import broker_to_test

ACL = {
    "resource_type": "TOPIC",
    "resource_name": "orders-",
    "pattern_type": "PREFIXED",
    "principal": "User:alice",
    "host": "*",
    "operation": "READ",
    "permission": "ALLOW",
}
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@pytest.fixture(scope="module")
def v3(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[V3]:
    with broker_to_test(request, tmp_path_factory.mktemp("v3-acls"), SETTINGS) as broker:
        values = {"bootstrap.servers": broker.bootstrap, "schema.registry.url": "mock://v3-acls"}
        with RunningRest(values) as rest, httpx.Client(base_url=rest.url, timeout=30) as client:
            yield V3(client)


@pytest.fixture(autouse=True)
def no_acls(v3: V3) -> Iterator[None]:
    yield
    kinds = dict.fromkeys(("resource_type", "pattern_type", "operation", "permission"), "ANY")
    assert v3.request("DELETE", "/acls", **kinds).status_code == 200
    assert v3.get("/acls")["data"] == []


def data(v3: V3, acl: dict[str, str]) -> dict[str, Any]:
    query = str(httpx.QueryParams(acl)).replace("*", "%2A")
    metadata = {"self": f"{v3.base}/acls?{query}", "resource_name": None}
    return {"kind": "KafkaAcl", "metadata": metadata, "cluster_id": v3.cluster_id, **acl}


def test_an_acl_that_is_created_is_found_and_deleted(v3: V3) -> None:
    created = v3.request("POST", "/acls", ACL)
    expected = data(v3, ACL)
    assert (created.status_code, created.content) == (201, b"")
    assert created.headers["location"] == expected["metadata"]["self"]
    found = v3.get("/acls", principal="User:alice")
    assert (found["kind"], found["data"]) == ("KafkaAclList", [expected])
    assert found["metadata"]["self"] == (
        f"{v3.base}/acls?resource_type=ANY&resource_name=&pattern_type=ANY&principal=User%3Aalice&host=&operation=ANY"
        "&permission=ANY"
    )
    assert v3.client.get(expected["metadata"]["self"]).json()["data"] == [expected]
    deleted = v3.request("DELETE", "/acls", **ACL)
    assert (deleted.status_code, deleted.json()) == (200, {"data": [expected]})
    assert v3.request("DELETE", "/acls", **ACL).json() == {"data": []}


def test_acls_are_created_together_and_listed_in_order(v3: V3) -> None:
    write, group = {**ACL, "operation": "WRITE"}, {**ACL, "resource_type": "GROUP", "pattern_type": "LITERAL"}
    response = v3.request("POST", "/acls:batch", {"data": [group, write, ACL]})
    assert (response.status_code, response.content) == (204, b"")
    assert v3.get("/acls")["data"] == [data(v3, each) for each in (ACL, write, group)]


@pytest.mark.parametrize(
    ("query", "is_found"),
    [
        ({"resource_type": "topic"}, True),
        ({"resource_type": "GROUP"}, False),
        ({"pattern_type": "MATCH", "resource_name": "orders-eu"}, True),
        ({"pattern_type": "LITERAL", "resource_name": "orders-"}, False),
        ({"operation": "READ", "permission": "ALLOW", "host": "*"}, True),
        ({"permission": "DENY"}, False),
        ({"principal": "User:bob"}, False),
    ],
)
def test_searches_select_as_kafka_does(v3: V3, query: dict[str, str], is_found: bool) -> None:
    v3.request("POST", "/acls", ACL)
    assert bool(v3.get("/acls", **query)["data"]) is is_found


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"resource_type": "ANY"}, "resource_type cannot be ANY"),
        ({"resource_type": "UNKNOWN"}, "resource_type cannot be UNKNOWN"),
        ({"pattern_type": "MATCH"}, "pattern_type cannot be MATCH"),
        ({"operation": "ANY"}, "operation cannot be ANY"),
        ({"permission": "PERHAPS"}, "permission cannot be PERHAPS"),
    ],
)
def test_an_acl_must_be_definite(v3: V3, fields: dict[str, str], message: str) -> None:
    acl, error = {**ACL, **fields}, {"error_code": 400, "message": message}
    for response in (v3.request("POST", "/acls", acl), v3.request("POST", "/acls:batch", {"data": [ACL, acl]})):
        assert (response.status_code, response.json()) == (400, error)


def test_a_deletion_must_say_what(v3: V3) -> None:
    for name in ("resource_type", "pattern_type", "operation", "permission"):
        response = v3.request("DELETE", "/acls", **{key: value for key, value in ACL.items() if key != name})
        error = {"error_code": 400, "message": f"{name} cannot be unspecified or UNKNOWN"}
        assert (response.status_code, response.json()) == (400, error)


def test_a_search_for_what_there_is_not(v3: V3) -> None:
    response = v3.request("GET", "/acls", resource_type="TABLE")
    assert (response.status_code, response.json()["error_code"]) == (404, 404)
    response = v3.request("GET", "/acls", operation="UNKNOWN")
    assert response.json() == {"error_code": 400, "message": "operation cannot be UNKNOWN"}


def test_an_incomplete_acl_is_refused(v3: V3) -> None:
    response = v3.request("POST", "/acls", {"resource_type": "TOPIC"})
    assert (response.status_code, response.json()["error_code"]) == (400, 400)
    response = v3.request("POST", "/acls:batch", b"")
    assert (response.status_code, response.json()["error_code"]) == (422, 42206)
