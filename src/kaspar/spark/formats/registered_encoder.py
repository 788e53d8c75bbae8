"""Encodes columns by a schema of the registry, and prefixes every record with its id.

The schema is determined once, on the driver, when a write is planned, by Confluent's rules. A given schema, or for Avro
the one derived from the type of the column, is registered (`auto.register.schemas`), or must already be registered.
`use.latest.version` or a version selects one of the subject. JSON and Protobuf without a given schema use the latest.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

import pyarrow as pa
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from kaspar.base.errors import InvalidSetting, KasparError
from kaspar.schemas.avro.types import Array, AvroType, Map, Record, Union
from kaspar.schemas.schema import InvalidSchema, SchemaType, format_of
from kaspar.serialization.errors import InvalidValue, RegistryError, RegistryUnavailable, SerializationError
from kaspar.serialization.registry_client import RegisteredSchema, SchemaText, shared_client
from kaspar.serialization.subject_names import strategy
from kaspar.serialization.values import values_of
from kaspar.serialization.wire_format import id_prefix
from kaspar.spark.formats.avro_schema_of import avro_schema_of
from kaspar.spark.formats.avro_types import parsed
from kaspar.spark.formats.avro_types import values_of as values_of_union
from kaspar.spark.formats.declared import Field
from kaspar.spark.formats.encoding_options import EncodingOptions
from kaspar.spark.formats.json_values import json_values
from kaspar.spark.formats.registered import schema_of_subject
from kaspar.spark.kafka_settings import InvalidOption

_TYPES: Final = {"avro": SchemaType.AVRO, "json": SchemaType.JSON, "protobuf": SchemaType.PROTOBUF}
_PLACEHOLDER: Final = "topic"


class UnwritableValue(KasparError):
    """A value does not match the schema. The text is for the author of the query."""


@dataclass(frozen=True, slots=True)
class PlannedEncoding:
    """The schema of a column, found once and passed to all tasks."""

    field: Field
    type: SchemaType
    schema_id: int
    text: str
    references: tuple[tuple[str, str], ...] = ()
    message: str | None = None


class Encoder(Protocol):
    def encode(self, column: pa.Array) -> pa.BinaryArray:
        """The records of a column; nulls stay null. Raises UnwritableValue."""


# --- On the driver ----------------------------------------------------------------------------------------------------


def planned_encoding(options: EncodingOptions, data_type: DataType, topic: str | None) -> PlannedEncoding:
    """Find the schema of a column of that type. `topic` is None if each row names its own. Raises InvalidOption, and
    RegistryUnavailable if the registry does not respond."""
    try:
        found = _registered(options, data_type, topic)
    except RegistryUnavailable:
        raise
    except (RegistryError, SerializationError, InvalidSetting, InvalidSchema) as problem:
        text = str(problem).rstrip(".")
        raise InvalidOption(f"The schema of the {options.field} cannot be used: {text}.") from problem
    assert found.id is not None, "it was found by its subject"
    references = tuple(found.referenced.items())
    planned = PlannedEncoding(
        options.field, found.schema.type, found.id, found.schema.text, references, options.message
    )
    if planned.type is SchemaType.AVRO:
        _check_columns(data_type, parsed(planned.text, found.referenced), options.field)
    return planned


def _registered(options: EncodingOptions, data_type: DataType, topic: str | None) -> RegisteredSchema:
    client = shared_client(options.registry)
    text = options.schema
    if text is None and options.name == "avro" and not options.use_latest and options.version is None:
        text = avro_schema_of(data_type)
    if options.use_latest or options.version is not None or text is None:
        version = None if options.use_latest else options.version
        return schema_of_subject(client, _subject(options, topic, text), version, options.name, options.field)
    schema = SchemaText(_TYPES[options.name], text)
    parsed_schema = format_of(schema.type).parse(text, {})  # before it is sent: the registry's messages say less
    subject = options.subject or _subject(options, topic, text, parsed_schema.name)
    if options.auto_register:
        return client.register(subject, schema, normalize=options.normalize)
    return client.lookup(subject, schema, normalize=options.normalize)


def _subject(options: EncodingOptions, topic: str | None, text: str | None, record_name: str | None = None) -> str:
    if options.subject is not None:
        return options.subject
    name = strategy(options.strategy)
    if text is not None and record_name is None:
        record_name = format_of(_TYPES[options.name]).parse(text, {}).name
    subject = name(topic or _PLACEHOLDER, options.field == "key", record_name)
    if topic is None and subject != name(f"other-{_PLACEHOLDER}", options.field == "key", record_name):
        raise InvalidOption(
            f"Option '{options.field}.subject' must be given: the rows name their topics themselves, so none of them "
            f"can be the subject of the schema. RecordNameStrategy as '{options.field}.subject.name.strategy' does "
            "without a topic, too."
        )
    return subject


def _check_columns(data_type: DataType, node: AvroType, where: str) -> None:
    """Check that the schema has each field of the column, and the column each required field of the schema."""
    if isinstance(node, Union):
        choices = values_of_union(node)
        if len(choices) != 1:
            return  # by value
        node = choices[0]
    match data_type, node:
        case StructType(), Record():
            known = {field.name: field for field in node.fields}
            for field in data_type.fields:
                if field.name not in known:
                    raise InvalidOption(
                        f"The schema, {node.name.full}, has no field for the column {where}.{field.name}."
                    )
                _check_columns(field.dataType, known[field.name].type, f"{where}.{field.name}")
            for name in known.keys() - set(data_type.names):
                if not known[name].has_default and not _is_nullable(known[name].type):
                    raise InvalidOption(f"The schema, {node.name.full}, needs a column {where}.{name}.")
        case (StructType(), _) | (_, Record()):
            raise InvalidOption(f"The column {where} is {data_type.simpleString()}, and its schema is {node.kind}.")
        case ArrayType(), Array():
            _check_columns(data_type.elementType, node.items, f"{where}[]")
        case MapType(), Map():
            _check_columns(data_type.valueType, node.values, f"{where}[]")


def _is_nullable(node: AvroType) -> bool:
    return isinstance(node, Union) and any(branch.kind == "null" for branch in node.branches)


# --- In tasks ---------------------------------------------------------------------------------------------------------


def encoder_of(planned: PlannedEncoding) -> Encoder:
    if planned.type is SchemaType.AVRO:
        return AvroEncoder(planned)
    return JsonFormEncoder(planned)


class AvroEncoder:
    """Encodes row by row, with fastavro."""

    def __init__(self, planned: PlannedEncoding) -> None:
        from fastavro import parse_schema

        from kaspar.schemas.avro import parse

        schema = parse(planned.text, dict(planned.references), validate_defaults=False)
        self._is_bytes = schema.root.kind == "bytes"  # Confluent's serializers write bytes as they are
        self._schema: Any = parse_schema(json.loads(schema.formatted("resolved")))
        self._planned = planned

    def encode(self, column: pa.Array) -> pa.BinaryArray:
        import io

        from fastavro import schemaless_writer

        def written(value: Any) -> bytes:
            if self._is_bytes:
                return bytes(value)
            stream = io.BytesIO()
            schemaless_writer(stream, self._schema, value)
            return stream.getvalue()

        return _encoded(column.to_pylist(maps_as_pydicts="lossy"), written, self._planned)


class JsonFormEncoder:
    """Encodes JSON, and Protobuf by its JSON form."""

    def __init__(self, planned: PlannedEncoding) -> None:
        self._values = values_of(planned.type, planned.text, dict(planned.references), planned.message)
        self._planned = planned

    def encode(self, column: pa.Array) -> pa.BinaryArray:
        return _encoded(json_values(column), self._values.to_bytes, self._planned)


def _encoded(values: list[Any], write: Callable[[Any], bytes], planned: PlannedEncoding) -> pa.BinaryArray:
    prefix = id_prefix(planned.schema_id)
    encoded: list[bytes | None] = []
    for value in values:
        try:
            encoded.append(None if value is None else prefix + write(value))
        except (InvalidValue, ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError) as error:
            text = str(error).strip().rstrip(".") or type(error).__name__
            raise UnwritableValue(
                f"A {planned.field} cannot be encoded by schema {planned.schema_id}: {text}."
            ) from error
    return pa.array(encoded, pa.binary())


def encoded_columns(batch: pa.RecordBatch, encoders: Mapping[Field, Encoder]) -> pa.RecordBatch:
    """The batch with its key and value columns encoded, if they have an encoder."""
    for name, encoder in encoders.items():
        if name in batch.schema.names:
            index = batch.schema.get_field_index(name)
            batch = batch.set_column(index, pa.field(name, pa.binary()), encoder.encode(batch.column(index)))
    return batch
