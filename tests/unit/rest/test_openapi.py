"""The OpenAPI description of version 2."""

import json

from kaspar.rest.v2.endpoints import ENDPOINTS
from kaspar.rest.v2.routes import v2_openapi


def test_every_endpoint_is_described_with_its_bodies() -> None:
    described = json.loads(v2_openapi())
    assert described["openapi"] == "3.1.0"
    for endpoint in ENDPOINTS:
        operation = described["paths"][endpoint.path][endpoint.method.lower()]
        assert operation["summary"] == endpoint.summary
        assert ("requestBody" in operation) is (endpoint.body is not None)
        assert ("200" in operation["responses"]) is (endpoint.response is not None)
        names = [each["name"] for each in operation["parameters"] if each["in"] == "path"]
        assert names == [part[1:-1] for part in endpoint.path.split("/") if part.startswith("{")]


def test_bodies_are_described_by_the_names_that_they_have_in_json() -> None:
    schemas = json.loads(v2_openapi())["components"]["schemas"]
    assert "auto.offset.reset" in schemas["CreateInstance"]["properties"]
    assert set(schemas["ConsumedRecord"]["properties"]) == {"topic", "key", "value", "partition", "offset"}


def test_operations_have_names_of_their_own() -> None:
    paths = json.loads(v2_openapi())["paths"]
    names = [operation["operationId"] for path in paths.values() for operation in path.values()]
    assert len(names) == len(set(names)) == len(ENDPOINTS)
