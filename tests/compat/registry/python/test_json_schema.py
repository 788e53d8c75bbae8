"""confluent-kafka-python's JSON Schema serializers against the registry, with records that pass through Kafka."""

import json
from typing import Any

import pytest
from confluent_kafka.schema_registry import (
    Schema,
    SchemaReference,
    SchemaRegistryError,
    header_schema_id_serializer,
)
from confluent_kafka.serialization import SerializationError

from tests.compat.registry.passing import Pass, value_of
from tests.compat.registry.python.flavours import JSON_SCHEMA, Flavour

DRAFTS = [
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
]


def product(draft: str = DRAFTS[2], **properties: Any) -> str:
    return json.dumps(
        {
            "$schema": draft,
            "title": "Product",
            "type": "object",
            "properties": {"id": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}}}
            | properties,
            "required": ["id"],
            "additionalProperties": False,
        }
    )


PRODUCT = {"id": 1, "tags": ["cold", "ice"]}


def serializer(flavour: Flavour, schema: str | Schema | None, **conf: Any) -> Any:
    return flavour.make(JSON_SCHEMA, "JSONSerializer", schema, flavour.raw_client, conf=conf)


def deserializer(flavour: Flavour, schema: str | Schema | None = None, **conf: Any) -> Any:
    return flavour.make(JSON_SCHEMA, "JSONDeserializer", schema, schema_registry_client=flavour.raw_client, conf=conf)


@pytest.mark.parametrize("draft", DRAFTS)
def test_values_pass(flavour: Flavour, topic: str, through_kafka: Pass, draft: str) -> None:
    data, _ = through_kafka(serializer(flavour, product(draft))(PRODUCT, value_of(topic)))
    flavour.client.clear_caches()
    assert deserializer(flavour)(data, value_of(topic)) == PRODUCT


def test_a_value_that_does_not_fit_is_refused(flavour: Flavour, topic: str) -> None:
    with pytest.raises(SerializationError, match="is a required property"):
        serializer(flavour, product())({"tags": []}, value_of(topic))


def test_a_reader_with_another_schema_is_refused(flavour: Flavour, topic: str) -> None:
    data = serializer(flavour, '{"title": "Other", "type": "object"}')({"name": "x"}, value_of(topic))
    with pytest.raises(SerializationError, match="'id' is a required property"):
        deserializer(flavour, product())(data, value_of(topic))


def test_a_schema_evolves(flavour: Flavour, topic: str) -> None:
    old = serializer(flavour, product())(PRODUCT, value_of(topic))
    serializer(flavour, product(price={"type": "number"}))({**PRODUCT, "price": 1.5}, value_of(topic))
    assert flavour.client.get_versions(f"{topic}-value") == [1, 2]
    assert deserializer(flavour, None, **{"use.latest.version": True})(old, value_of(topic)) == PRODUCT
    with pytest.raises(SchemaRegistryError, match="incompatible with an earlier schema") as caught:
        serializer(flavour, product(id={"type": "string"}))({"id": "1"}, value_of(topic))
    assert (caught.value.http_status_code, caught.value.error_code) == (409, 409)
    conf = {"auto.register.schemas": False, "use.latest.version": True}
    latest = serializer(flavour, None, **conf)({**PRODUCT, "price": 2}, value_of(topic))
    assert int.from_bytes(latest[1:5], "big") == flavour.client.get_latest_version(f"{topic}-value").schema_id


def test_the_record_strategy_takes_the_title(flavour: Flavour, topic: str) -> None:
    schema = product().replace('"Product"', f'"Product of {topic}"')
    serializer(flavour, schema, **{"subject.name.strategy.type": "RECORD"})(PRODUCT, value_of(topic))
    assert flavour.client.get_versions(f"Product of {topic}") == [1]


def test_the_schema_can_be_named_in_a_header(flavour: Flavour, topic: str, through_kafka: Pass) -> None:
    context = value_of(topic)
    sent = serializer(flavour, product(), **{"schema.id.serializer": header_schema_id_serializer})(PRODUCT, context)
    data, headers = through_kafka(sent, context.headers)
    flavour.client.clear_caches()
    assert deserializer(flavour)(data, value_of(topic, headers)) == PRODUCT


def test_references(flavour: Flavour, topic: str, through_kafka: Pass) -> None:
    base = f"http://example.com/{topic}/"

    def document(name: str, /, **properties: Any) -> str:
        return json.dumps(
            {
                "$schema": DRAFTS[2],
                "$id": f"{base}{name}.schema.json",
                "title": name,
                "type": "object",
                "properties": properties,
                "required": sorted(properties),
            }
        )

    def reference(name: str) -> SchemaReference:
        return SchemaReference(f"{base}{name}.schema.json", f"{topic}-{name}", 1)

    def pointer(name: str) -> dict[str, str]:
        return {"$ref": f"{base}{name}.schema.json"}

    def register(name: str, text: str, *references: SchemaReference) -> None:
        flavour.client.register_schema(f"{topic}-{name}", Schema(text, "JSON", list(references)))

    register("customer", document("customer", name={"type": "string"}))
    register("details", document("details", customer=pointer("customer")), reference("customer"))
    register("product", document("product", id={"type": "integer"}))
    text = document("order", details=pointer("details"), product=pointer("product"))
    schema = Schema(text, "JSON", [reference("details"), reference("product")])
    order = {"details": {"customer": {"name": "John Doe"}}, "product": {"id": 1}}
    data, _ = through_kafka(serializer(flavour, schema)(order, value_of(topic)))
    for known in (schema, None):
        flavour.client.clear_caches()
        assert deserializer(flavour, known)(data, value_of(topic)) == order
    with pytest.raises(SerializationError, match="required property"):
        serializer(flavour, schema)({"details": {"customer": {}}, "product": {"id": 1}}, value_of(topic))
