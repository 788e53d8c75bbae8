"""confluent-kafka-python's Avro serializers against the registry, with records that pass through Kafka."""

import datetime
import json
from decimal import Decimal
from typing import Any

import pytest
from confluent_kafka.schema_registry import (
    Metadata,
    MetadataProperties,
    Schema,
    SchemaReference,
    SchemaRegistryError,
    header_schema_id_serializer,
    record_subject_name_strategy,
    topic_record_subject_name_strategy,
    topic_subject_name_strategy,
)

from tests.compat.registry.passing import Pass, key_of, value_of
from tests.compat.registry.python.flavours import AVRO, Flavour

USER = json.dumps(
    {
        "type": "record",
        "name": "User",
        "namespace": "shop",
        "fields": [{"name": "name", "type": "string"}, {"name": "number", "type": "int"}],
    }
)
OLDER_USER = json.dumps({"type": "record", "name": "shop.User", "fields": [{"name": "name", "type": "string"}]})
NEWER_USER = json.dumps(
    {
        "type": "record",
        "name": "shop.User",
        "fields": [
            {"name": "name", "type": "string"},
            {"name": "number", "type": "long"},
            {"name": "colour", "type": ["null", "string"], "default": None},
        ],
    }
)
INCOMPATIBLE_USER = NEWER_USER.replace('["null", "string"], "default": null', '"string"')
ALEX = {"name": "Jämtland", "number": 7}


def serializer(flavour: Flavour, schema: str | Schema | None, **conf: Any) -> Any:
    return flavour.make(AVRO, "AvroSerializer", flavour.raw_client, schema, conf=conf)


def deserializer(flavour: Flavour, schema: str | Schema | None = None, **conf: Any) -> Any:
    return flavour.make(AVRO, "AvroDeserializer", flavour.raw_client, schema, conf=conf)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (USER, ALEX),
        ('"string"', "Jämtland"),
        ('"boolean"', True),
        ('{"type": "double"}', 68.032768),
        ('["null", "long", "string"]', 5),
        (
            '{"type": "map", "values": {"type": "array", "items": {"type": "enum", "name": "E", "symbols": ["A"]}}}',
            {"x": ["A"]},
        ),
        ('{"type": "int", "logicalType": "date"}', datetime.date(2024, 2, 29)),
        (
            '{"type": "record", "name": "Priced", "fields": [{"name": "price", "type": '
            '{"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}}]}',
            {"price": Decimal("12.34")},
        ),
    ],
)
def test_values_pass(flavour: Flavour, topic: str, through_kafka: Pass, schema: str, value: Any) -> None:
    data, _ = through_kafka(serializer(flavour, schema)(value, value_of(topic)))
    assert deserializer(flavour)(data, value_of(topic)) == value
    assert flavour.client.get_versions(f"{topic}-value") == [1]


def test_keys_have_a_subject_of_their_own(flavour: Flavour, topic: str) -> None:
    data = serializer(flavour, '"long"')(5, key_of(topic))
    assert deserializer(flavour)(data, key_of(topic)) == 5
    assert flavour.client.get_versions(f"{topic}-key") == [1]


@pytest.mark.parametrize(
    ("conf", "subject"),
    [
        ({"subject.name.strategy": topic_subject_name_strategy}, "{}-value"),
        ({"subject.name.strategy": topic_record_subject_name_strategy}, "{}-shop.User{}"),
        ({"subject.name.strategy": record_subject_name_strategy}, "shop.User{}"),
        ({"subject.name.strategy.type": "TOPIC"}, "{}-value"),
        ({"subject.name.strategy.type": "TOPIC_RECORD"}, "{}-shop.User{}"),
        ({"subject.name.strategy.type": "RECORD"}, "shop.User{}"),
        ({"subject.name.strategy.type": "ASSOCIATED"}, "{}-value"),
    ],
)
def test_subject_name_strategies(flavour: Flavour, topic: str, conf: dict[str, Any], subject: str) -> None:
    record = topic.replace("-", "_")
    schema = USER.replace('"User"', f'"User{record}"')
    data = serializer(flavour, schema, **conf)(ALEX, value_of(topic))
    assert deserializer(flavour, **conf)(data, value_of(topic)) == ALEX
    named = subject.format(record if subject.startswith("shop") else topic, record)
    assert flavour.client.get_versions(named) == [1]


def test_without_auto_register_a_schema_has_to_be_there(flavour: Flavour, topic: str) -> None:
    conf = {"auto.register.schemas": False}
    with pytest.raises(SchemaRegistryError) as caught:
        serializer(flavour, USER, **conf)(ALEX, value_of(topic))
    assert (caught.value.http_status_code, caught.value.error_code) == (404, 40401)
    schema_id = flavour.client.register_schema(f"{topic}-value", Schema(USER, "AVRO"))
    data = serializer(flavour, USER, **conf)(ALEX, value_of(topic))
    assert int.from_bytes(data[1:5], "big") == schema_id


def test_an_incompatible_schema_is_refused_when_it_registers_itself(flavour: Flavour, topic: str) -> None:
    serializer(flavour, USER)(ALEX, value_of(topic))
    with pytest.raises(SchemaRegistryError, match="incompatible with an earlier schema") as caught:
        serializer(flavour, INCOMPATIBLE_USER)({**ALEX, "colour": "red"}, value_of(topic))
    assert (caught.value.http_status_code, caught.value.error_code) == (409, 409)


def test_the_latest_version_is_used_to_write_and_to_read(flavour: Flavour, topic: str, through_kafka: Pass) -> None:
    subject = f"{topic}-value"
    flavour.client.register_schema(subject, Schema(USER, "AVRO"))
    newest = flavour.client.register_schema(subject, Schema(NEWER_USER, "AVRO"))
    conf = {"auto.register.schemas": False, "use.latest.version": True}
    data, _ = through_kafka(serializer(flavour, None, **conf)({**ALEX, "colour": "red"}, value_of(topic)))
    assert data is not None
    assert int.from_bytes(data[1:5], "big") == newest
    old = serializer(flavour, USER, **{"auto.register.schemas": False})(ALEX, value_of(topic))
    assert deserializer(flavour, None, **{"use.latest.version": True})(old, value_of(topic)) == {**ALEX, "colour": None}


def test_the_latest_version_with_metadata_is_used(flavour: Flavour, topic: str) -> None:
    ids = {}
    for major, schema in (("1", USER), ("2", NEWER_USER)):
        metadata = Metadata(None, MetadataProperties({"major": major}), None)
        ids[major] = flavour.client.register_schema(f"{topic}-value", Schema(schema, "AVRO", metadata=metadata))
    for major, schema_id in ids.items():
        conf = {"auto.register.schemas": False, "use.latest.with.metadata": {"major": major}}
        data = serializer(flavour, None, **conf)({**ALEX, "colour": None}, value_of(topic))
        assert int.from_bytes(data[1:5], "big") == schema_id


def test_a_schema_is_used_by_its_id(flavour: Flavour, topic: str) -> None:
    schema_id = flavour.client.register_schema(f"{topic}-value", Schema(USER, "AVRO"))
    flavour.client.register_schema(f"{topic}-value", Schema(NEWER_USER, "AVRO"))
    conf = {"auto.register.schemas": False, "use.schema.id": schema_id}
    data = serializer(flavour, None, **conf)(ALEX, value_of(topic))
    assert int.from_bytes(data[1:5], "big") == schema_id


def test_normalized_schemas_share_a_version(flavour: Flavour, topic: str) -> None:
    fields = '[{"type":{"type":"string"},"name":"name"},{"type":"int","name":"number"}]'
    spelled = f'{{"namespace":"shop","name":"User","fields":{fields},"type":"record"}}'
    conf = {"normalize.schemas": True}
    data = serializer(flavour, spelled, **conf)(ALEX, value_of(topic))
    assert serializer(flavour, USER, **conf)(ALEX, value_of(topic)) == data
    assert flavour.client.get_versions(f"{topic}-value") == [1]


def test_readers_of_other_versions(flavour: Flavour, topic: str) -> None:
    old = serializer(flavour, USER)(ALEX, value_of(topic))
    new = serializer(flavour, NEWER_USER)({**ALEX, "colour": "red"}, value_of(topic))
    assert flavour.client.get_versions(f"{topic}-value") == [1, 2]
    newer, older = deserializer(flavour, NEWER_USER), deserializer(flavour, OLDER_USER)
    assert newer(old, value_of(topic)) == {**ALEX, "colour": None}
    assert newer(new, value_of(topic)) == {**ALEX, "colour": "red"}
    assert older(new, value_of(topic)) == {"name": ALEX["name"]}


def test_the_schema_can_be_named_in_a_header(flavour: Flavour, topic: str, through_kafka: Pass) -> None:
    context = value_of(topic)
    sent = serializer(flavour, USER, **{"schema.id.serializer": header_schema_id_serializer})(ALEX, context)
    data, headers = through_kafka(sent, context.headers)
    assert [name for name, _ in headers] == ["__value_schema_id"]
    flavour.client.clear_caches()
    assert deserializer(flavour)(data, value_of(topic, headers)) == ALEX


NAMES = "shop.refs."


@pytest.mark.parametrize("reader_knows", [True, False])
def test_named_types_of_other_subjects(flavour: Flavour, topic: str, through_kafka: Pass, reader_knows: bool) -> None:
    def record(name: str, /, **fields: str) -> str:
        listed = [{"name": field, "type": kind} for field, kind in fields.items()]
        return json.dumps({"type": "record", "name": NAMES + name, "fields": listed})

    def reference(name: str) -> SchemaReference:
        return SchemaReference(NAMES + name, f"{topic}-{name}", 1)

    def register(name: str, text: str, *references: SchemaReference) -> None:
        flavour.client.register_schema(f"{topic}-{name}", Schema(text, "AVRO", list(references)))

    register("Person", record("Person", name="string"))
    register("Properties", record("Properties", year="int", points="int"))
    register("Award", record("Award", name="string", properties="Properties"), reference("Properties"))
    text = record("AwardedPerson", award="Award", person="Person")
    schema = Schema(text, "AVRO", [reference("Person"), reference("Award")])
    value = {
        "award": {"name": "Best In Show", "properties": {"year": 2023, "points": 10}},
        "person": {"name": "Bowie"},
    }
    data, _ = through_kafka(serializer(flavour, schema)(value, value_of(topic)))
    flavour.client.clear_caches()
    assert deserializer(flavour, schema if reader_knows else None)(data, value_of(topic)) == value


def test_an_unknown_id_is_an_error_of_the_registry(flavour: Flavour, topic: str) -> None:
    with pytest.raises(SchemaRegistryError) as caught:
        deserializer(flavour)(b"\x00\x00\x98\x96\x80\x02", value_of(topic))
    assert (caught.value.http_status_code, caught.value.error_code) == (404, 40403)
