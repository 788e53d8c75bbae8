"""Values of a Protobuf schema in Protobuf's JSON form, as in Confluent's tools.

Names are in camel case, and fields without a value are written with their default. Both names of a field are read, and
a field that the message does not have is refused. The message of the schema is identified by a prefix of the bytes
(wire_format.py); the first one is written by default.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kaspar.schemas.schema import InvalidSchema
from kaspar.serialization.errors import InvalidValue, UnreadableBytes, reason_of
from kaspar.serialization.protobuf_to_json import ToJson
from kaspar.serialization.quick_values import QUICK_BYTES
from kaspar.serialization.wire_format import FIRST_MESSAGE, read_indexes, write_indexes

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FileDescriptor
    from google.protobuf.message import Message

_MAX_REASON: Final = 1000
_QUICK_FIELDS: Final = 16 * 1024


class ProtobufValues:
    """The values of one schema."""

    def __init__(self, text: str, references: Mapping[str, str], message: str | None = None) -> None:
        """`message` is the full name of the message to write. Raises InvalidSchema."""
        from google.protobuf import json_format

        self._file = file_of(text, references)
        self._pool = self._file.pool
        self._classes: dict[tuple[int, ...], type[Message]] = {}
        self._indexes = FIRST_MESSAGE if message is None else indexes_of(self._file, message)
        self._prefix = write_indexes(self._indexes)
        self._parse = json_format.ParseDict
        self._to_json = ToJson(self._pool)
        self._most_fields = _most_fields(self._class(self._indexes).DESCRIPTOR)

    def to_bytes(self, value: Any) -> bytes:
        from google.protobuf.json_format import ParseError

        if not isinstance(value, dict) and not _is_special(self._class(self._indexes).DESCRIPTOR):
            raise InvalidValue(f"Expected an object, a message, not {type(value).__name__}.")
        message = self._class(self._indexes)()
        try:
            self._parse(value, message, descriptor_pool=self._pool)
        except ParseError as error:
            raise InvalidValue(_one_line(error)) from error
        except (TypeError, ValueError, AttributeError, RecursionError) as error:
            # json_format does not report everything, for instance an array for a well-known type.
            raise InvalidValue(f"The value is not of {message.DESCRIPTOR.full_name} ({reason_of(error)}).") from error
        written: bytes = message.SerializeToString(deterministic=True)
        return self._prefix + written

    def is_quick(self, data: bytes) -> bool:
        """For every message json_format iterates over all fields of its type."""
        return len(data) <= QUICK_BYTES and data.count(b"{") * self._most_fields <= _QUICK_FIELDS

    to_bytes_quickly = to_bytes

    def from_bytes(self, data: bytes) -> Any:
        from google.protobuf.message import DecodeError

        indexes, start = read_indexes(data)
        message = self._class(indexes)()
        try:
            message.ParseFromString(bytes(data[start:]))
        except DecodeError as error:
            raise UnreadableBytes(f"The bytes are no {message.DESCRIPTOR.full_name} ({reason_of(error)}).") from error
        try:
            return self._to_json.of(message.DESCRIPTOR)(message)
        except (TypeError, ValueError, RecursionError) as error:  # an Any of an unknown type, a time out of range
            raise UnreadableBytes(
                f"The {message.DESCRIPTOR.full_name} has no JSON form ({reason_of(error)})."
            ) from error

    def _class(self, indexes: tuple[int, ...]) -> "type[Message]":
        found = self._classes.get(indexes)
        if found is None:
            from google.protobuf.message_factory import GetMessageClass

            found = self._classes[indexes] = GetMessageClass(message_at(self._file, indexes))
        return found


def message_at(file: "FileDescriptor", indexes: Sequence[int]) -> "Descriptor":
    """The message with these indexes. Raises UnreadableBytes."""
    messages: Sequence[Descriptor] = list(file.message_types_by_name.values())
    found = None
    for index in indexes:
        if index >= len(messages):
            shown = ", ".join(map(str, indexes))
            raise UnreadableBytes(f"The schema has no message with the indexes [{shown}].")
        found = messages[index]
        messages = found.nested_types
    assert found is not None, "there is one index at least"
    return found


def indexes_of(file: "FileDescriptor", name: str) -> tuple[int, ...]:
    """The indexes of the message with this name. Raises InvalidSchema."""
    try:
        message = file.pool.FindMessageTypeByName(name)
    except KeyError:
        message = None
    if message is None or message.file.name != file.name:
        raise InvalidSchema(f"The schema has no message {name}.")
    indexes: list[int] = []
    while message is not None:
        outer = message.containing_type
        siblings = file.message_types_by_name.values() if outer is None else outer.nested_types
        indexes.append([each.name for each in siblings].index(message.name))
        message = outer
    return tuple(reversed(indexes))


def _most_fields(message: "Descriptor") -> int:
    """The largest number of fields of this message and all messages that it can contain."""
    found = {message.full_name: message}
    open_messages = [message]
    while open_messages:
        for field in open_messages.pop().fields:
            inner = field.message_type
            if inner is not None and inner.full_name not in found:
                found[inner.full_name] = inner
                open_messages.append(inner)
    return max(len(each.fields) for each in found.values())


def _one_line(error: Exception) -> str:
    """json_format's text on one line. It lists fields on separate lines, and repeats itself for each level."""
    return " ".join(f"{reason_of(error)}.".split())[:_MAX_REASON]


def _is_special(message: "Descriptor") -> bool:
    """Whether its JSON form need not be an object: Timestamp, wrappers, Value and the like."""
    return bool(message.full_name.startswith("google.protobuf."))


def file_of(text: str, references: Mapping[str, str]) -> "FileDescriptor":
    """The schema's file in its own pool, with everything that it imports. Raises InvalidSchema."""
    from kaspar.schemas.protobuf.descriptors import FileDescriptorSet, private_pool
    from kaspar.schemas.protobuf.sources import compile_schema

    files = FileDescriptorSet.FromString(compile_schema(text, references)).file
    try:
        file: FileDescriptor = private_pool(each.SerializeToString() for each in files).FindFileByName(files[-1].name)
        return file
    except (TypeError, KeyError) as error:
        raise InvalidSchema(f"The Protobuf schema is invalid: {reason_of(error)}.") from error
