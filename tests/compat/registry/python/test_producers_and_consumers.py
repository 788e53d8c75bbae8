"""Serializing producers and deserializing consumers of confluent-kafka-python: the registry's errors become theirs."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import DeserializingConsumer, KafkaError, SerializingProducer, TopicPartition
from confluent_kafka.error import ConsumeError, KeyDeserializationError, ValueSerializationError
from confluent_kafka.schema_registry import Rule, RuleKind, RuleMode, RuleSet, Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.rule_registry import RuleRegistry
from confluent_kafka.schema_registry.serde import RuleConditionError, RuleContext, RuleExecutor
from confluent_kafka.serialization import SerializationError, StringDeserializer, StringSerializer

from tests.compat.registry.passing import value_of
from tests.compat.scenario import NewTopic
from tests.peers.brokers import Brokers

POLL_SECONDS = 15.0
COUNTER = '{"type": "record", "name": "Counter", "fields": [{"name": "count", "type": "int"}]}'
PRODUCT = '{"title": "Product", "type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}'


@pytest.fixture
def client(url: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": url}) as made:
        yield made


def _producer(broker: Brokers, **serializers: Any) -> SerializingProducer:
    named = {name.replace("_", "."): value for name, value in serializers.items()}
    return SerializingProducer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0, **named})


def _poll(broker: Brokers, topic: str, **deserializers: Any) -> Any:
    named = {name.replace("_", "."): value for name, value in deserializers.items()}
    consumer = DeserializingConsumer({"bootstrap.servers": broker.bootstrap, "group.id": topic, **named})
    consumer.assign([TopicPartition(topic, 0, 0)])
    try:
        return consumer.poll(POLL_SECONDS)
    finally:
        consumer.close()


def test_keys_and_values_of_records(client: SchemaRegistryClient, broker: Brokers, new_topic: NewTopic) -> None:
    topic = new_topic()
    producer = _producer(broker, key_serializer=StringSerializer(), value_serializer=AvroSerializer(client, COUNTER))
    producer.produce(topic, key="k", value={"count": 1})
    producer.close()
    message = _poll(broker, topic, key_deserializer=StringDeserializer(), value_deserializer=AvroDeserializer(client))
    assert (message.key(), message.value()) == ("k", {"count": 1})
    with pytest.raises(ConsumeError) as caught:
        _poll(broker, topic, key_deserializer=AvroDeserializer(client))
    assert isinstance(caught.value, KeyDeserializationError)
    assert caught.value.code == KafkaError._KEY_DESERIALIZATION


def test_values_that_do_not_fit(client: SchemaRegistryClient, broker: Brokers, new_topic: NewTopic) -> None:
    topic = new_topic()
    producer = _producer(broker, value_serializer=JSONSerializer(PRODUCT, client))
    with pytest.raises(ValueSerializationError, match="'id' is a required property"):
        producer.produce(topic, value={"name": "x"})
    producer.produce(topic, value={"id": 1})
    producer.close()
    other = '{"title": "Other", "type": "object", "required": ["name"]}'
    with pytest.raises(ConsumeError, match="'name' is a required property"):
        _poll(broker, topic, value_deserializer=JSONDeserializer(other, schema_registry_client=client))


class _Refuse(RuleExecutor):
    """A rule of the kind that programs add to the client: its condition holds for no record that says "hi"."""

    def type(self) -> str:
        return "REFUSE"

    def configure(self, client_conf: dict[str, Any], rule_conf: dict[str, Any]) -> None: ...

    def transform(self, ctx: RuleContext, message: Any) -> Any:
        return message["text"] != ctx.rule.expr

    def close(self) -> None: ...


def test_rules_that_the_registry_keeps_are_run_by_clients(client: SchemaRegistryClient, topic: str) -> None:
    rules: Any = RuleRegistry()  # type: ignore[no-untyped-call]
    rules.register_executor(_Refuse())
    rule = Rule(
        *("no-hi", "", RuleKind.CONDITION, RuleMode.READ, "REFUSE", None, None, "hi", None, "ERROR", False),
    )
    text = json.dumps({"type": "record", "name": "Said", "fields": [{"name": "text", "type": "string"}]})
    client.register_schema(f"{topic}-value", Schema(text, "AVRO", [], None, RuleSet(None, [rule])))
    conf = {"auto.register.schemas": False, "use.latest.version": True}
    serializer = AvroSerializer(client, conf=conf, rule_registry=rules)
    deserializer = AvroDeserializer(client, rule_registry=rules)
    assert deserializer(serializer({"text": "hello"}, value_of(topic)), value_of(topic)) == {"text": "hello"}
    with pytest.raises(SerializationError) as caught:
        deserializer(serializer({"text": "hi"}, value_of(topic)), value_of(topic))
    assert isinstance(caught.value.__cause__, RuleConditionError)
