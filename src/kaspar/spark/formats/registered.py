"""Reads records with schemas of a registry: looks up the reader's schema of a query, and creates the decoders.

The reader's schema is looked up once, on the driver, when the query is planned: a given one, a version of a subject, or
the latest version of the subject of its topic. It determines the columns, so it stays the same while the query runs.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from pyspark.sql.types import DataType, StructType

from kaspar.schemas.schema import SchemaType
from kaspar.serialization.errors import RegistryError, RegistryUnavailable
from kaspar.serialization.registry_client import RegisteredSchema, RegistryClient, shared_client
from kaspar.serialization.subject_names import topic_name
from kaspar.spark.formats.declared import Field, FormatOptions
from kaspar.spark.formats.decoder import Decoder
from kaspar.spark.kafka_settings import InvalidOption

_TYPES = {"avro": SchemaType.AVRO, "json": SchemaType.JSON, "protobuf": SchemaType.PROTOBUF}


def planned(declared: FormatOptions, field: Field, topics: Sequence[str]) -> FormatOptions:
    """The declared format with the reader's schema. `topics` are those of the query that its options name. Raises
    InvalidOption and RegistryUnavailable."""
    if declared.registry is None or declared.reader_schema is not None or declared.descriptor_set is not None:
        return declared
    found = _reader(declared, field, topics)
    try:
        return _with_reader(declared, found)
    except InvalidOption as problem:
        name = f"version {found.version} of {found.subject}"
        remedy = "" if declared.name == "protobuf" else f" Option '{field}.readerSchema' can name another."
        raise InvalidOption(
            f"The registry's schema, {name}, cannot be read into columns: {problem}{remedy}"
        ) from problem


def registered_decoder(declared: FormatOptions) -> Decoder:
    """The decoder of a format that `planned` has returned. Raises InvalidOption."""
    assert declared.registry is not None
    match declared:
        case FormatOptions(name="avro", reader_schema=str(reader_schema)):
            from kaspar.spark.formats.registered_avro import RegisteredAvroDecoder

            return RegisteredAvroDecoder(reader_schema, declared.registry)
        case FormatOptions(name="json", reader_schema=str(reader_schema)):
            from kaspar.spark.formats.data_types import data_type_of
            from kaspar.spark.formats.registered_json import RegisteredJsonDecoder

            return RegisteredJsonDecoder(data_type_of(reader_schema), declared.registry)
        case FormatOptions(name="protobuf", message=str(message), descriptor_set=bytes(descriptor_set)):
            from kaspar.spark.formats.protobuf import ProtobufDecoder, message_of_descriptor_set
            from kaspar.spark.formats.registered_protobuf import RegisteredMessages

            reader = message_of_descriptor_set(descriptor_set, message)
            return ProtobufDecoder(reader, RegisteredMessages(reader, declared.registry))
    raise AssertionError(f"the reader's schema of {declared.name} was not planned")


def _reader(declared: FormatOptions, field: Field, topics: Sequence[str]) -> RegisteredSchema:
    assert declared.registry is not None
    client = shared_client(declared.registry)
    if declared.subject is not None:
        return schema_of_subject(client, declared.subject, declared.version, declared.name, field)
    if not topics:
        raise InvalidOption(
            f"Option '{field}.subject' must be given: which topics match option 'subscribePattern' is not known before "
            "the query runs, and so neither is the subject whose schema decides the columns."
        )
    look_up = partial(schema_of_subject, client, version=declared.version, name=declared.name, field=field)
    found = {topic: look_up(topic_name(topic, field == "key", None)) for topic in topics}
    first, *others = found.values()
    for other in others:
        if (other.schema.text, other.schema.references) != (first.schema.text, first.schema.references):
            raise InvalidOption(
                f"The schemas of the subjects {first.subject} and {other.subject} differ, and a query has one type of "
                f"{field}: name the subject to read them by with option '{field}.subject'."
            )
    return first


def schema_of_subject(
    client: RegistryClient, subject: str, version: int | None, name: str, field: Field
) -> RegisteredSchema:
    """The schema of a subject, the latest if `version` is None. `name` is that of the format. Raises InvalidOption, and
    RegistryUnavailable if the registry does not respond."""
    try:
        found = client.latest(subject) if version is None else client.version(subject, version)
    except RegistryUnavailable:
        raise
    except RegistryError as error:
        text = str(error).rstrip(".")
        raise InvalidOption(
            f"The schema of the {field} could not be fetched from the registry: {text}. Option '{field}.subject' "
            "names the "
            f"subject, which is {subject} otherwise."
        ) from error
    if found.schema.type is not _TYPES[name]:
        raise InvalidOption(
            f"Option '{field}.format' is {name}, and the schema of {subject} is of type {found.schema.type.value}."
        )
    return found


def _with_reader(declared: FormatOptions, found: RegisteredSchema) -> FormatOptions:
    match declared.name:
        case "avro":
            return replace(declared, reader_schema=_self_contained(found))
        case "json":
            from kaspar.spark.formats.json_schema_types import spark_type_of

            return replace(declared, reader_schema=_as_text(spark_type_of(found.schema.text)))
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    from kaspar.spark.formats.registered_protobuf import descriptor_set_of, message_names

    descriptor_set = descriptor_set_of(found)
    names = message_names(FileDescriptorSet.FromString(descriptor_set).file[-1])
    if not names:
        raise InvalidOption("it has no message.")
    return replace(declared, descriptor_set=descriptor_set, message=declared.message or next(iter(names.values())))


def _as_text(data_type: DataType) -> str:
    """The type as a text that data_type_of parses."""
    return data_type.json() if isinstance(data_type, StructType) else data_type.simpleString()


def _self_contained(found: RegisteredSchema) -> str:
    """The text of the schema, with the schemas that it refers to inlined."""
    from kaspar.schemas.avro import parse
    from kaspar.schemas.schema import InvalidSchema

    try:
        return parse(found.schema.text, found.referenced, validate_defaults=False).formatted("resolved")
    except InvalidSchema as problem:
        raise InvalidOption(f"{problem}.") from problem
