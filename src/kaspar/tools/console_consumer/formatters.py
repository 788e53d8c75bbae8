"""How records are printed: Kafka's formatters, by class name."""

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from kaspar.base.errors import KasparError, MalformedBytes
from kaspar.tools.console_consumer.deserializers import Deserializer, deserializer
from kaspar.tools.schema_records.formats import is_schema_formatter

if TYPE_CHECKING:
    from confluent_kafka import Message

    from kaspar.tools.internal_records import InternalRecord

Formatter = Callable[["Message"], bytes]
"""The bytes to print for a record. Raises a KasparError if it cannot be printed."""

_PACKAGE: Final = "org.apache.kafka.tools.consumer."
DEFAULT_FORMATTER: Final = f"{_PACKAGE}DefaultMessageFormatter"
_TIMESTAMP_TYPES: Final = {0: b"NO_TIMESTAMP", 1: b"CreateTime:%d", 2: b"LogAppendTime:%d"}
_PRINTED: Final = (
    "print.timestamp",
    "print.partition",
    "print.offset",
    "print.delivery",
    "print.epoch",
    "print.headers",
    "print.key",
    "print.value",
)
"""In the order of the output."""


class FormattingFailed(KasparError):
    pass


def formatter(class_name: str, properties: Mapping[str, str]) -> Formatter | None:
    """The formatter of this class; None if it is unknown. Raises InvalidSetting for schema registry properties."""
    if is_schema_formatter(class_name):
        from kaspar.tools.schema_records.printing import field_printers

        return default_formatter(properties, *field_printers(properties))
    match class_name.removeprefix(_PACKAGE):
        # The additional log line of the latter is below its log level.
        case "DefaultMessageFormatter" | "LoggingMessageFormatter":
            return default_formatter(properties)
        case "NoOpMessageFormatter":
            return lambda message: b""
        case "OffsetsMessageFormatter":
            from kaspar.tools.internal_records import OFFSET_COMMITS, decode_group_record

            return _internal_records(decode_group_record, OFFSET_COMMITS)
        case "GroupMetadataMessageFormatter":
            from kaspar.tools.internal_records import GROUP_METADATA, decode_group_record

            return _internal_records(decode_group_record, (GROUP_METADATA,))
        case "TransactionLogMessageFormatter":
            from kaspar.tools.internal_records import decode_transaction_record

            return _internal_records(decode_transaction_record, None)
    return None


# --- DefaultMessageFormatter ------------------------------------------------------------------------------------------


def default_formatter(
    properties: Mapping[str, str], key: Formatter | None = None, value: Formatter | None = None
) -> Formatter:
    """Prints the parts in a fixed order with `key.separator` between them, and `line.separator` at the end. `key` and
    `value` replace the usual formatters of a record's key and value, which print bytes or use one of Kafka's
    deserializers."""
    parts = {
        "print.timestamp": _timestamp,
        "print.partition": lambda message: b"Partition:%d" % message.partition(),
        "print.offset": lambda message: b"Offset:%d" % message.offset(),
        # Kafka's console consumer does not have these values either: it copies each record before printing it.
        "print.delivery": lambda message: b"Delivery:NOT_PRESENT",
        "print.epoch": lambda message: b"Epoch:NOT_PRESENT",
        "print.headers": _headers(properties),
        "print.key": key or _field(properties, "key", lambda message: message.key()),
        "print.value": value or _field(properties, "value", lambda message: message.value()),
    }
    shown = [parts[name] for name in _PRINTED if _is_true(properties.get(name, str(name == "print.value")))]
    separator, line_end = _octets(properties, "key.separator", "\t"), _octets(properties, "line.separator", "\n")
    if not shown:
        return lambda message: b""
    if len(shown) == 1:
        (only,) = shown
        return lambda message: only(message) + line_end
    return lambda message: separator.join([part(message) for part in shown]) + line_end


def _timestamp(message: "Message") -> bytes:
    kind, time_ms = message.timestamp()
    text = _TIMESTAMP_TYPES[kind]
    return text % time_ms if kind else text


def _headers(properties: Mapping[str, str]) -> Formatter:
    separator, null = _octets(properties, "headers.separator", ","), _octets(properties, "null.literal", "null")
    deserialize = _deserializer(properties, "headers.deserializer") or _as_it_is

    def headers(message: "Message") -> bytes:
        found: Any = message.headers()  # a list, though the declared type is wider
        if not found:
            return b"NO_HEADERS"
        return separator.join(
            [name.encode() + b":" + deserialize(null if value is None else _bytes(value)) for name, value in found]
        )

    return headers


def _field(properties: Mapping[str, str], name: str, value_of: "Callable[[Message], str | bytes | None]") -> Formatter:
    """The literal for null is also passed through the deserializer, as in Kafka."""
    null = _octets(properties, "null.literal", "null")
    deserialize = _deserializer(properties, f"{name}.deserializer")
    if deserialize is None:
        return lambda message: null if (value := value_of(message)) is None else value  # type: ignore[return-value]
    return lambda message: deserialize(null if (value := value_of(message)) is None else _bytes(value))


def _deserializer(properties: Mapping[str, str], name: str) -> Deserializer | None:
    class_name = properties.get(name)
    if class_name is None:
        return None
    encoding = properties.get(f"{name}.{name}.encoding") or properties.get(f"{name}.deserializer.encoding", "UTF-8")
    found = deserializer(class_name, encoding)
    if found is None:
        print(
            f"ERROR Unable to instantiate a deserializer from {class_name}\n"
            "It is none of Kafka's own, and Java classes cannot be loaded: bytes are printed as they are.",
            file=sys.stderr,
        )
    return found


def _octets(properties: Mapping[str, str], name: str, default: str) -> bytes:
    return properties.get(name, default).encode()


def _bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode()


def _as_it_is(data: bytes) -> bytes:
    return data


def _is_true(text: str) -> bool:
    return text.strip().lower() == "true"


# --- Internal topics --------------------------------------------------------------------------------------------------


def _internal_records(
    decode: "Callable[[bytes, bytes | None], InternalRecord | None]", types: tuple[int, ...] | None
) -> Formatter:
    """`types` are the record types that are printed, or None for all."""
    from kaspar.tools.message_json import json_line

    def write(message: "Message") -> bytes:
        key, value = message.key(), message.value()
        if key is None:
            return b""
        try:
            record = decode(_bytes(key), None if value is None else _bytes(value))
        except MalformedBytes as problem:
            raise FormattingFailed(f"Could not read record at offset {message.offset()} due to: {problem}") from None
        if record is None or (types is not None and record.type not in types):
            return b""
        shown = None if record.value is None else {"version": record.version, "data": record.value}
        return json_line({"key": {"type": record.type, "data": record.key}, "value": shown}).encode()

    return write
