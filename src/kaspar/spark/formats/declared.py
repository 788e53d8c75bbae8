"""The options that declare a format, and their decoders.

Files that an option names are read on the driver, when the options are parsed: executors need not have them.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from kaspar.spark.formats.decoder import Decoder
from kaspar.spark.formats.plain import BytesDecoder, StringDecoder
from kaspar.spark.kafka_settings import InvalidOption

Field = Literal["key", "value"]

# The options of a format beside `<field>.format`, and whether each is required.
_OPTIONS: dict[str, dict[str, bool]] = {
    "bytes": {},
    "string": {},
    "json": {"schema": True},
    "avro": {"schema": True, "readerSchema": False},
    "protobuf": {"message": True, "schema": False},
}
_ALL_OPTIONS = ("schema", "readerSchema", "message")


@dataclass(frozen=True, slots=True)
class FormatOptions:
    """The declared format of one field: `<field>.format` and its options, with files already read."""

    name: str = "bytes"
    schema: str | None = None  # of json, Spark's; of avro, its own
    reader_schema: str | None = None  # of avro
    message: str | None = None  # of protobuf: a full name in the descriptor set, or a class to import
    descriptor_set: bytes | None = None

    @classmethod
    def of(cls, options: Mapping[str, str], field: Field) -> "FormatOptions":
        """From the options of a query, with case-insensitive names. Raises InvalidOption."""
        given = {name.lower(): text.strip() for name, text in options.items()}
        name = given.get(f"{field}.format", "bytes").lower()
        if name not in _OPTIONS:
            raise InvalidOption(f"Option '{field}.format' must be one of {', '.join(_OPTIONS)}, and {name!r} is not.")
        texts = {option: given.get(f"{field}.{option}".lower()) or None for option in _ALL_OPTIONS}
        for option, text in texts.items():
            if text is None and _OPTIONS[name].get(option, False):
                raise InvalidOption(f"Option '{field}.format' is {name}, so option '{field}.{option}' must be given.")
            if text is not None and option not in _OPTIONS[name]:
                raise InvalidOption(f"Option '{field}.{option}' has no meaning while '{field}.format' is {name}.")
        schema, reader_schema, message = (texts[option] for option in _ALL_OPTIONS)
        match name:
            case "avro":
                schema = _avro_text(schema, f"{field}.schema")
                reader_schema = _avro_text(reader_schema, f"{field}.readerSchema")
            case "protobuf":
                return cls(name, message=message, descriptor_set=_descriptor_set(schema, f"{field}.schema"))
        return cls(name, schema, reader_schema)


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


def _avro_text(given: str | None, option: str) -> str | None:
    """The schema itself, or the content of the file that the option names."""
    if given is None or given.startswith(("{", "[", '"')):
        return given
    return _content(given, option).decode("utf-8", "replace")


def _descriptor_set(given: str | None, option: str) -> bytes | None:
    """From a file, or from base64 in the option itself."""
    if given is None:
        return None
    if not Path(given).is_file():
        try:
            return base64.b64decode(given, validate=True)
        except (binascii.Error, ValueError):
            pass
    return _content(given, option)


def _content(path: str, option: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InvalidOption(f"Option '{option}' names a file that cannot be read: {path} ({error.strerror}).") from None
