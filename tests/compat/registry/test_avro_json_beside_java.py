"""Avro's JSON encoding beside Java's JsonEncoder and JsonDecoder, which Confluent's tools use."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings

from kaspar.schemas.avro.types import AvroType
from kaspar.serialization.avro_schemas import has_empty_items
from kaspar.serialization.avro_values import AvroValues
from tests.peers.avro_java import JavaRefused
from tests.peers.avro_json import AvroJson
from tests.peers.missing import unless_missing
from tests.property.test_avro_json_encoding import schemas_with_values
from tests.unit.serialization.avro_cases import BOTH_WAYS, REFUSED, WRITTEN, Case

EXAMPLES = settings(max_examples=150, deadline=None, database=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def java() -> Iterator[AvroJson]:
    with unless_missing(AvroJson) as running:
        yield running


@pytest.mark.parametrize("case", BOTH_WAYS, ids=lambda case: case.name)
def test_java_writes_and_reads_the_same(java: AvroJson, case: Case) -> None:
    assert java.encode(case.schema, case.value).hex() == case.data
    assert java.decode(case.schema, bytes.fromhex(case.data)) == json.loads(case.value)


@pytest.mark.parametrize("case", WRITTEN, ids=lambda case: case.name)
def test_java_writes_the_same(java: AvroJson, case: Case) -> None:
    assert java.encode(case.schema, case.value).hex() == case.data


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_java_refuses_the_same(java: AvroJson, case: Case) -> None:
    with pytest.raises(JavaRefused):
        java.encode(case.schema, case.value)


@EXAMPLES
@given(example=schemas_with_values())
def test_generated_values_are_javas_both_ways(java: AvroJson, example: tuple[str, AvroType, Any]) -> None:
    text, root, value = example
    assume(root.kind != "bytes")  # which Confluent does not encode
    assume(not has_empty_items(root))
    assume('"fields": []' not in text)  # JsonEncoder prints nothing for a record without fields
    assume('"items": "double"' not in text)  # Avro 1.12.0 reads them as floats
    prepared = AvroValues(text, {})
    assert java.decode(text, prepared.to_bytes(value)) == value
    assert prepared.from_bytes(java.encode(text, json.dumps(value))) == value
