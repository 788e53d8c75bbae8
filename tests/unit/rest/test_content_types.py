"""The content types of version 2."""

import pytest

from kaspar.rest.errors import RestError
from kaspar.rest.formats import EmbeddedFormat
from kaspar.rest.v2.content_types import KAFKA_V2_JSON, error_type, produced_format, records_type, response_type


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        ("application/vnd.kafka.binary.v2+json", EmbeddedFormat.BINARY),
        ("application/vnd.kafka.json.v2+json; charset=utf-8", EmbeddedFormat.JSON),
        ("Application/Vnd.Kafka.Avro.V2+Json", EmbeddedFormat.AVRO),
        ("application/vnd.kafka.jsonschema.v2+json", EmbeddedFormat.JSONSCHEMA),
        ("application/vnd.kafka.protobuf.v2+json", EmbeddedFormat.PROTOBUF),
        ("application/vnd.kafka.json.v1+json", EmbeddedFormat.JSON),
        ("application/vnd.kafka.json+json", EmbeddedFormat.JSON),
        ("application/vnd.kafka.v2+json", EmbeddedFormat.BINARY),
        ("application/vnd.kafka+json", EmbeddedFormat.BINARY),
        ("application/json", EmbeddedFormat.BINARY),
        ("application/octet-stream", EmbeddedFormat.BINARY),
        (None, EmbeddedFormat.BINARY),
    ],
)
def test_the_type_of_a_request_names_the_format_of_its_records(
    content_type: str | None, expected: EmbeddedFormat
) -> None:
    assert produced_format(content_type) is expected


@pytest.mark.parametrize(
    "content_type",
    [
        "application/vnd.kafka.v3+json",
        "application/vnd.kafka.binary.v1+foo",
        "application/vnd.kafka.avro.v0+json",
        "application/vnd.kafka",
        "application/vnd.kafka.csv.v2+json",
        "application/x-www-form-urlencoded",
        "text/plain",
        "bar/baz",
        "",
    ],
)
def test_other_types_are_refused(content_type: str) -> None:
    if not content_type:
        assert produced_format(content_type) is EmbeddedFormat.BINARY  # as if none was given
        return
    with pytest.raises(RestError) as refused:
        produced_format(content_type)
    assert refused.value.kind.status == 415


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (None, KAFKA_V2_JSON),
        ("*/*", KAFKA_V2_JSON),
        ("application/*", KAFKA_V2_JSON),
        ("application/json", "application/json"),
        ("text/html, application/json;q=0.5", "application/json"),
        ("application/json;q=0.5, application/vnd.kafka.v2+json", KAFKA_V2_JSON),
        ("application/json;q=0, */*;q=0.1", KAFKA_V2_JSON),
        ("application/vnd.kafka.json.v2+json", "application/vnd.kafka.json.v2+json"),
    ],
)
def test_a_response_is_of_the_type_that_the_client_prefers(accept: str | None, expected: str) -> None:
    assert response_type(accept) == expected


@pytest.mark.parametrize("accept", ["text/html", "foo/*", "*/baz", "application/vnd.kafka+foo", "*/*;q=0"])
def test_a_client_that_accepts_no_known_type_is_refused(accept: str) -> None:
    with pytest.raises(RestError) as refused:
        response_type(accept)
    assert refused.value.kind.status == 406
    assert error_type(accept) == KAFKA_V2_JSON


def test_records_are_of_the_format_of_their_instance() -> None:
    own = "application/vnd.kafka.json.v2+json"
    for accept in (None, "*/*", "application/json", "application/vnd.kafka.v2+json", own):
        assert records_type(accept, EmbeddedFormat.JSON) == own
    both = f"application/vnd.kafka.binary.v2+json, {own};q=0.1"
    assert records_type(both, EmbeddedFormat.JSON) == own
    with pytest.raises(RestError) as refused:
        records_type("application/vnd.kafka.binary.v2+json", EmbeddedFormat.JSON)
    assert refused.value.kind.code == 40601
