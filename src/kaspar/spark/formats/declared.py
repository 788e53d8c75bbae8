"""The options that declare a format.

Files that an option names are read on the driver when the options are parsed, so executors need not have them. The
reader's schema of a registry is also looked up on the driver, once for each query (registered.py).
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from kaspar.spark.kafka_settings import InvalidOption, whole_number
from kaspar.spark.registry_options import URL, registry_of

if TYPE_CHECKING:
    from kaspar.serialization.registry_config import RegistryConfig

Field = Literal["key", "value"]

# The options of a format beside `<field>.format`, and whether each is required.
_OPTIONS: dict[str, dict[str, bool]] = {
    "bytes": {},
    "string": {},
    "json": {"schema": True},
    "avro": {"schema": True, "readerSchema": False},
    "protobuf": {"message": True, "schema": False},
}
# The same for a format with a registry. Its records have registered schemas, so the field has no schema option.
_REGISTERED_OPTIONS: dict[str, dict[str, bool]] = {
    "json": {"readerSchema": False, "subject": False, "schema.version": False},
    "avro": {"readerSchema": False, "subject": False, "schema.version": False},
    "protobuf": {"message": False, "subject": False, "schema.version": False},
}
_ALL_OPTIONS = ("schema", "readerSchema", "message", "subject", "schema.version")


@dataclass(frozen=True, slots=True)
class FormatOptions:
    """The declared format of one field: `<field>.format` and its options, with files already read."""

    name: str = "bytes"
    schema: str | None = None  # for json, Spark's schema; for avro, Avro's
    reader_schema: str | None = None  # the same, for records whose own schemas are in a registry
    message: str | None = None  # for protobuf: a full name in the descriptor set, or a class to import
    descriptor_set: bytes | None = None
    registry: "RegistryConfig | None" = None
    subject: str | None = None  # the subject of the reader's schema
    version: int | None = None

    @classmethod
    def of(cls, options: Mapping[str, str], field: Field) -> "FormatOptions":
        """The format that the options of a query declare. Names are case-insensitive. Raises InvalidOption."""
        given = {name.lower(): text.strip() for name, text in options.items()}
        name = given.get(f"{field}.format", "bytes").lower()
        if name not in _OPTIONS:
            raise InvalidOption(f"Option '{field}.format' must be one of {', '.join(_OPTIONS)}, not {name!r}.")
        texts = {option: given.get(f"{field}.{option}".lower()) or None for option in _ALL_OPTIONS}
        if name in _REGISTERED_OPTIONS and texts["schema"] is None and (registry := registry_of(given)) is not None:
            _check(texts, name, field, _REGISTERED_OPTIONS[name])
            return cls._registered(name, texts, field, registry)
        _check(texts, name, field, _OPTIONS[name])
        schema, reader_schema, message = (texts[option] for option in ("schema", "readerSchema", "message"))
        match name:
            case "avro":
                schema = avro_text(schema, f"{field}.schema")
                reader_schema = avro_text(reader_schema, f"{field}.readerSchema")
            case "protobuf":
                return cls(name, message=message, descriptor_set=_descriptor_set(schema, f"{field}.schema"))
        return cls(name, schema, reader_schema)

    @classmethod
    def _registered(
        cls, name: str, texts: Mapping[str, str | None], field: Field, registry: "RegistryConfig"
    ) -> "FormatOptions":
        reader_schema = texts["readerSchema"]
        if name == "avro":
            reader_schema = avro_text(reader_schema, f"{field}.readerSchema")
        if reader_schema is not None and (texts["subject"] or texts["schema.version"]):
            raise InvalidOption(
                f"Option '{field}.readerSchema' is the schema that '{field}.subject' and '{field}.schema.version' "
                "would look up: give one or the other."
            )
        version = texts["schema.version"]
        return cls(
            name,
            reader_schema=reader_schema,
            message=texts["message"],
            registry=registry,
            subject=texts["subject"],
            version=version_of(version, f"{field}.schema.version"),
        )


def version_of(text: str | None, option: str) -> int | None:
    """The version that an option names; None for the latest."""
    if not text or text.lower() in ("latest", "-1"):
        return None
    return whole_number({option: text}, option, 0, at_least=1)


def _check(texts: Mapping[str, str | None], name: str, field: Field, known: Mapping[str, bool]) -> None:
    for option, text in texts.items():
        if text is None and known.get(option, False):
            more = f", or '{URL}' if the records have ids of registered schemas" if name in _REGISTERED_OPTIONS else ""
            raise InvalidOption(f"Option '{field}.format' is {name}, so option '{field}.{option}' must be given{more}.")
        if text is not None and option not in known:
            where = " by the schema registry" if known is _REGISTERED_OPTIONS.get(name) else ""
            raise InvalidOption(f"Option '{field}.{option}' has no effect while '{field}.format' is {name}{where}.")


def avro_text(given: str | None, option: str) -> str | None:
    """The schema itself, or the content of the file that the option names."""
    if given is None or given.startswith(("{", "[", '"')):
        return given
    return file_content(given, option).decode("utf-8", "replace")


def _descriptor_set(given: str | None, option: str) -> bytes | None:
    """The descriptor set from the file that the option names, or from base64 in the option itself."""
    if given is None:
        return None
    if not Path(given).is_file():
        try:
            return base64.b64decode(given, validate=True)
        except (binascii.Error, ValueError):
            pass
    return file_content(given, option)


def file_content(path: str, option: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InvalidOption(f"Option '{option}' names a file that cannot be read: {path} ({error.strerror}).") from None
