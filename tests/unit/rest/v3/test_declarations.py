"""What the endpoints declare: routes that do not hide each other, names, media types and the OpenAPI description."""

import json
import re

import pytest

from kaspar.rest.errors import RestError
from kaspar.rest.v3.endpoint import check_accepted, check_body_type
from kaspar.rest.v3.groups import state_name
from kaspar.rest.v3.names import ResourceNames
from kaspar.rest.v3.producing.bodies import timestamp_text
from kaspar.rest.v3.routes import ALL_ENDPOINTS, v3_openapi


def test_no_path_hides_a_later_one() -> None:
    """Starlette takes the first route whose path matches, whatever its methods."""
    paths = list(dict.fromkeys(endpoint.path for endpoint in ALL_ENDPOINTS))
    for place, path in enumerate(paths):
        concrete = path.replace("{", "").replace("}", "")
        for earlier in paths[:place]:
            pattern = re.sub(r"\\{\w+\\}", "[^/]+", re.escape(earlier))
            assert not re.fullmatch(pattern, concrete), f"{earlier} hides {path}"


def test_every_endpoint_is_described_once() -> None:
    described = json.loads(v3_openapi())
    operations = {
        (method.upper(), path): each for path, methods in described["paths"].items() for method, each in methods.items()
    }
    assert set(operations) == {(endpoint.method, endpoint.path) for endpoint in ALL_ENDPOINTS}
    assert len(operations) == len(ALL_ENDPOINTS)
    ids = [each["operationId"] for each in operations.values()]
    assert len(set(ids)) == len(ids)


def test_the_description_refers_only_to_what_it_has() -> None:
    text = v3_openapi().decode()
    schemas = json.loads(text)["components"]["schemas"]
    assert set(re.findall(r"#/components/schemas/(\w+)", text)) <= set(schemas)


def test_parameters_of_paths_have_their_types() -> None:
    described = json.loads(v3_openapi())
    path = "/v3/clusters/{cluster_id}/topics/{topic_name}/partitions/{partition_id}"
    parameters = described["paths"][path]["get"]["parameters"]
    types = {each["name"]: each["schema"]["type"] for each in parameters}
    assert types == {"cluster_id": "string", "topic_name": "string", "partition_id": "integer"}


def test_urls_quote_what_may_stand_in_names() -> None:
    names = ResourceNames("http://proxy:8082", "", "c1")
    assert (
        names.url("consumer-groups", "a/b c?d%") == "http://proxy:8082/v3/clusters/c1/consumer-groups/a%2Fb%20c%3Fd%25"
    )
    assert names.url("acls", query={"principal": "User:é&"}) == (
        "http://proxy:8082/v3/clusters/c1/acls?principal=User%3A%C3%A9%26"
    )


def test_resource_names_have_the_authority_that_is_configured() -> None:
    parts = (("topic", "t"), ("partition", 1), ("reassignment", None))
    assert ResourceNames("", "", "c1").crn(*parts) == "crn:///kafka=c1/topic=t/partition=1/reassignment"
    assert ResourceNames("", "example.org", "c1").crn() == "crn://example.org/kafka=c1"


@pytest.mark.parametrize("accept", [None, "", "*/*", "application/*", "text/html, application/json;q=0.1"])
def test_json_is_accepted(accept: str | None) -> None:
    check_accepted(accept)


@pytest.mark.parametrize("accept", ["text/html", "application/vnd.kafka.v2+json", "application/json;q=0", "*/*;q=0.0"])
def test_a_client_that_accepts_no_json_is_refused(accept: str) -> None:
    with pytest.raises(RestError, match="406"):
        check_accepted(accept)


@pytest.mark.parametrize(
    ("content_type", "is_json"),
    [
        (None, True),
        ("application/json", True),
        ("Application/JSON; charset=utf-8", True),
        ("text/plain", False),
        ("application/vnd.kafka.json.v2+json", False),
    ],
)
def test_bodies_are_json(content_type: str | None, is_json: bool) -> None:
    if is_json:
        check_body_type(content_type)
    else:
        with pytest.raises(RestError, match="415"):
            check_body_type(content_type)


@pytest.mark.parametrize(
    ("state", "name"),
    [("PreparingRebalance", "PREPARING_REBALANCE"), ("Stable", "STABLE"), ("Empty", "EMPTY"), ("", "UNKNOWN")],
)
def test_states_of_groups_have_the_names_of_the_api(state: str, name: str) -> None:
    assert state_name(state) == name


@pytest.mark.parametrize(
    ("timestamp_ms", "text"),
    [(1_612_552_482_000, "2021-02-05T19:14:42Z"), (1_612_552_482_007, "2021-02-05T19:14:42.007Z"), (None, None)],
)
def test_timestamps_are_written_as_java_does(timestamp_ms: int | None, text: str | None) -> None:
    assert timestamp_text(timestamp_ms) == text
