"""Values of an Avro schema in Avro's JSON encoding, like Java's JsonEncoder and JsonDecoder.

A union is null or an object with the name of its branch, bytes are text of the characters 0 to 255, logical types are
their underlying numbers, texts and bytes. As in Java, every field must be given, by its name or an alias: defaults are
for readers of older data. Fields that the schema does not have are ignored, and 1.0 is a valid int.

Unlike in Java, "NaN", "Infinity" and "-Infinity", which JsonEncoder writes, are read as well, and a character that is
not a byte is refused, where Java would write a question mark.

A value whose whole schema is `bytes` is not encoded at all: Confluent's KafkaAvroSerializer writes the raw bytes.
"""

import io
from collections.abc import Callable, Mapping
from typing import Any, Final

from kaspar.serialization.avro_from_json import FromJson
from kaspar.serialization.avro_schemas import FastavroSchema, has_empty_items, is_recursive, load_schema, most_choices
from kaspar.serialization.avro_to_json import ToJson
from kaspar.serialization.errors import InvalidValue, UnreadableBytes, reason_of
from kaspar.serialization.quick_values import QUICK_BYTES

_QUICK_CHOICES: Final = 512 * 1024
"""Symbols and branches, which fastavro searches linearly, times the bytes of a value."""


class AvroValues:
    """The values of one schema. What depends only on the schema is computed once."""

    def __init__(self, text: str, references: Mapping[str, str]) -> None:
        """Raises InvalidSchema."""
        from fastavro import parse_schema, schemaless_reader, schemaless_writer

        root = load_schema(text, references)
        self._is_bytes = root.kind == "bytes"
        self._has_empty_items = has_empty_items(root)
        self._quick_bytes = min(QUICK_BYTES, _QUICK_CHOICES // most_choices(root))
        written = FastavroSchema(root, branches_are_named=False)
        self._write_schema = parse_schema(written.root)
        self._read_schema = parse_schema(FastavroSchema(root, branches_are_named=True).root)
        self._to_written = FromJson(written).of(root)
        self._from_read = ToJson(root).of(root)
        self._write: Callable[..., None] = schemaless_writer
        self._read: Callable[..., Any] = schemaless_reader
        if is_recursive(root):
            # For infinitely recursive values the compiled reader overflows the stack; this one raises.
            from fastavro._read_py import schemaless_reader as checked_reader

            self._read = checked_reader

    def to_bytes(self, value: Any) -> bytes:
        """Raises InvalidValue."""
        try:
            converted = self._to_written(value)
            if self._is_bytes:
                return bytes(converted)
            stream = io.BytesIO()
            self._write(stream, self._write_schema, converted)
        except RecursionError:
            raise InvalidValue("The value is nested too deeply.") from None
        except UnicodeEncodeError:
            raise InvalidValue("A text has half of a surrogate pair in it, which UTF-8 has not.") from None
        return stream.getvalue()

    def is_quick(self, data: bytes) -> bool:
        return len(data) <= self._quick_bytes

    to_bytes_quickly = to_bytes

    def from_bytes(self, data: bytes) -> Any:
        """Raises UnreadableBytes."""
        if self._is_bytes:
            return bytes(data).decode("latin-1")
        if self._has_empty_items:
            raise UnreadableBytes("Arrays of items without bytes are not read: a byte could be any number of them.")
        try:
            value = self._read(io.BytesIO(data), self._read_schema, None)
            return value if self._from_read is None else self._from_read(value)
        except RecursionError:
            raise UnreadableBytes("The value is nested too deeply.") from None
        except Exception as error:  # fastavro raises many types: EOFError, IndexError, UnicodeDecodeError
            raise UnreadableBytes(f"The bytes are not Avro of the schema ({_problem(error)}).") from error


def _problem(error: Exception) -> str:
    match error:
        case EOFError():
            return "they end too early"
        case IndexError():
            return "a number is longer than it can be, or names no branch or symbol"
        case UnicodeDecodeError():
            return "a text is not UTF-8"
    return reason_of(error)
