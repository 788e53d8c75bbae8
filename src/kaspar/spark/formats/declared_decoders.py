"""Creates the decoder of a declared format. The codec that it needs is loaded when it is created."""

from typing import Protocol

from kaspar.spark.formats.declared import Field, FormatOptions
from kaspar.spark.formats.decoder import Decoder
from kaspar.spark.formats.plain import BytesDecoder, StringDecoder
from kaspar.spark.kafka_settings import InvalidOption


class DeclaredFormats(Protocol):
    """The part of ReadOptions that formats need."""

    @property
    def key_format(self) -> FormatOptions: ...
    @property
    def value_format(self) -> FormatOptions: ...


def decoder_of(options: DeclaredFormats, field: Field) -> Decoder:
    """The decoder of a field. Raises InvalidOption if its schema cannot be used."""
    declared = options.key_format if field == "key" else options.value_format
    try:
        if declared.registry is not None:
            from kaspar.spark.formats.registered import registered_decoder

            return registered_decoder(declared)
        return _decoder(declared)
    except InvalidOption as error:
        option = "message" if declared.name == "protobuf" and declared.descriptor_set is None else "schema"
        raise InvalidOption(f"Option '{field}.{option}' cannot be used: {error}") from error


def _decoder(declared: FormatOptions) -> Decoder:
    match declared:
        case FormatOptions(name="string"):
            return StringDecoder()
        case FormatOptions(name="json", schema=str(schema)):
            from kaspar.spark.formats.data_types import data_type_of
            from kaspar.spark.formats.json_columns import JsonDecoder

            return JsonDecoder(data_type_of(schema))
        case FormatOptions(name="avro", schema=str(schema)):
            from kaspar.spark.formats.avro import AvroDecoder

            return AvroDecoder(schema, declared.reader_schema)
        case FormatOptions(name="protobuf", message=str(message)):
            from kaspar.spark.formats import protobuf

            if declared.descriptor_set is None:
                return protobuf.ProtobufDecoder(protobuf.message_of_class(message))
            return protobuf.ProtobufDecoder(protobuf.message_of_descriptor_set(declared.descriptor_set, message))
    return BytesDecoder()
