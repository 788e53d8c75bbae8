"""The common part of the six commands: their names, properties and examples."""

from typing import Final

from kaspar.tools.console_consumer.command import ConsumerCommand
from kaspar.tools.console_producer.command import ProducerCommand
from kaspar.tools.schema_records.formats import SchemaFormat

_DEFAULTS: Final = {"schema.registry.url": "http://localhost:8081"}
_REGISTRY: Final = (
    "schema.registry.url: the registry, http://localhost:8081 by default; basic.auth.credentials.source=USER_INFO with "
    "basic.auth.user.info=USER:PASSWORD, bearer.auth.token and schema.registry.ssl.*: how to log in there. "
)
_WRITING: Final = (
    "value.schema, value.schema.file or value.schema.id: the schema of the values, as text, in a file or by its id in "
    "the registry. value.refs: what it refers to, as a list in JSON. With parse.key=true the same with key. instead of "
    "value., or key.serializer for keys without a schema: StringSerializer, LongSerializer, IntegerSerializer or "
    "ShortSerializer in org.apache.kafka.common.serialization. auto.register=false: the schema must be registered "
    "already; with use.latest.version=true the latest of the subject is used. normalize.schemas=true: register it in "
    "its normal form. value.subject.name.strategy, key.subject.name.strategy: TopicNameStrategy, RecordNameStrategy or "
    "TopicRecordNameStrategy. "
)
_MESSAGES: Final = "value.schema.full.name, key.schema.full.name: which message of the schema; the first by default. "
_READING: Final = (
    "print.schema.ids=true: print the ids of the schemas, too, after schema.id.separator, a tab by default. "
)


def producer_command(name: str, schema_format: SchemaFormat, example: str) -> ProducerCommand:
    return ProducerCommand(
        name,
        f"Send lines of JSON to a topic, each as a record in {schema_format.title} by a schema of a registry.",
        example=example,
        line_reader=schema_format.reader,
        line_readers_help="Confluent's or Kafka's, by their classes",
        reader_properties=_DEFAULTS,
        reader_properties_help=_REGISTRY + _WRITING + (_MESSAGES if schema_format.type == "PROTOBUF" else ""),
        property_is_deprecated=False,
    )


def consumer_command(name: str, schema_format: SchemaFormat) -> ConsumerCommand:
    return ConsumerCommand(
        name,
        f"Print the records of topics as JSON, by the schemas of a registry with which they were written: "
        f"{schema_format.title}, or another format.",
        example=f"{name} --bootstrap-server localhost:9092 --topic orders --from-beginning "
        "--property schema.registry.url=http://localhost:8081 --property print.key=true",
        formatter=schema_format.formatter,
        formatters_help="Confluent's or Kafka's, by their classes",
        formatter_properties=_DEFAULTS,
        formatter_properties_help=_REGISTRY + _READING,
        property_is_deprecated=False,
    )
