"""kio as the oracle: random messages from the tables, the same as kio's objects, and kio's bytes of them."""

import dataclasses
import datetime
import importlib
import io
import pkgutil
import random
import sys
import typing
import uuid
from collections.abc import Iterator
from functools import cache
from typing import Any, TypeGuard

from kio.schema.errors import ErrorCode as KioErrorCode
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import TZAware, i32Timedelta, i64Timedelta

import kaspar.protocol.messages
from kaspar.base.ids import ZERO_UUID
from kaspar.protocol.schema import NO_TAG, Field, Message, VersionRange
from scripts.generate_messages import OWN_APIS, name_of

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_INTEGER_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_ERROR_CODES = [int(code) for code in KioErrorCode]
_TEXTS = ["", "a", "topic-1", "größe", "話題", "🦊", "x" * 130]
_BYTES = [b"", b"\0", b"bytes", b"\xff" * 200]


def all_messages() -> Iterator[tuple[type[Message], int]]:
    """Every top-level message of Kafka's at every version."""
    for _, name, _ in pkgutil.iter_modules(kaspar.protocol.messages.__path__):
        if name in OWN_APIS:
            continue
        module = importlib.import_module(f"kaspar.protocol.messages.{name}")
        classes = [value for value in vars(module).values() if _is_message_class(value)]
        inside = {field.type.removeprefix("[]") for cls in classes for field in cls.SCHEMA.fields}
        for cls in classes:
            if cls.__name__ not in inside:
                first, last = VersionRange.parse(cls.SCHEMA.versions)
                for version in range(first, last + 1):
                    yield cls, version


def _is_message_class(value: object) -> TypeGuard[type[Message]]:
    return isinstance(value, type) and issubclass(value, Message) and value is not Message


class Oracle:
    """One top-level message class at one version, beside kio's class of it."""

    def __init__(self, message_class: type[Message], version: int) -> None:
        package = message_class.__module__.rpartition(".")[2]
        name = message_class.__name__
        part = "request" if name.endswith("Request") else "response" if name.endswith("Response") else "data"
        module = importlib.import_module(f"kio.schema.{package}.v{version}.{part}")
        self.message_class = message_class
        self.version = version
        self.kio_class: type[Any] = vars(module)[name]

    def random_message(self, randomness: random.Random) -> Any:
        """A message with random values in the fields of this version, and defaults in all others."""
        return self._random_struct(self.message_class, self.kio_class, randomness)

    def to_kio(self, message: Message) -> Any:
        return _to_kio(message, self.kio_class)

    def write(self, message: Message) -> bytes:
        """kio's bytes of it."""
        buffer = io.BytesIO()
        entity_writer(self.kio_class)(buffer, self.to_kio(message))
        return buffer.getvalue()

    def read(self, data: bytes) -> Any:
        """kio's object of it."""
        entity, size = entity_reader(self.kio_class)(data, 0)
        assert size == len(data)
        return entity

    def _random_struct(self, message_class: Any, kio_type: Any, randomness: random.Random) -> Any:
        values: dict[str, Any] = {}
        for field, nullable, kio_field in _fields_at(message_class, self.version, kio_type):
            if nullable and randomness.random() < 0.2:
                values[field.name] = None
            elif field.type.startswith("[]"):
                count = randomness.choice((0, 1, 2, 3))
                values[field.name] = tuple(
                    self._random_value(message_class, field.type[2:], kio_field, randomness) for _ in range(count)
                )
            else:
                values[field.name] = self._random_value(message_class, field.type, kio_field, randomness)
        return message_class(**values)

    def _random_value(
        self, message_class: type[Message], element: str, kio_field: Any, randomness: random.Random
    ) -> Any:
        match kio_field.metadata.get("kafka_type"):
            case "error_code":
                return randomness.choice(_ERROR_CODES)
            case "datetime_i64":
                return randomness.randint(0, 4_000_000_000) * 1000  # kio's moments have no milliseconds
            case "timedelta_i64":
                return randomness.randint(-(2**40), 2**40)
        if element in _INTEGER_BITS:
            limit = 1 << (_INTEGER_BITS[element] - 1)
            return randomness.choice((0, 1, -1, limit - 1, -limit, randomness.randint(-limit, limit - 1)))
        match element:
            case "uint16":
                return randomness.randint(0, 0xFFFF)
            case "uint32":
                return randomness.randint(0, 0xFFFF_FFFF)
            case "bool":
                return randomness.random() < 0.5
            case "float64":
                return randomness.choice((0.0, -1.5, 1e300, randomness.random()))
            case "string":
                return randomness.choice(_TEXTS)
            case "bytes" | "records":
                return randomness.choice(_BYTES)
            case "uuid":
                return ZERO_UUID if randomness.random() < 0.2 else uuid.UUID(int=randomness.getrandbits(128) | 1)
        struct_class = vars(sys.modules[message_class.__module__])[element]
        return self._random_struct(struct_class, _struct_in(kio_field.type), randomness)


@cache
def _fields_at(message_class: Any, version: int, kio_type: Any) -> list[tuple[Field, bool, Any]]:
    """The fields of that version, whether they may be null in a test, and kio's fields."""
    kio_fields = {name_of(field): field for field in dataclasses.fields(kio_type)}
    found = []
    for field in message_class.SCHEMA.fields:
        if version in VersionRange.parse(field.versions):
            default = message_class.__dataclass_fields__[field.name].default
            nullable = version in VersionRange.parse(field.nullable)
            # kio cannot write a tagged null: it leaves out the default, and takes every other value for not null.
            found.append((field, nullable and (field.tag == NO_TAG or default is None), kio_fields[field.name]))
    assert len(found) == len(kio_fields)
    return found


def _struct_in(shape: Any) -> Any:
    """The struct in a kio annotation such as tuple[Struct, ...] | None."""
    if dataclasses.is_dataclass(shape):
        return shape
    for part in typing.get_args(shape):
        if (inner := _struct_in(part)) is not None:
            return inner
    return None


def _to_kio(message: Message, kio_type: Any) -> Any:
    values = {}
    for field in dataclasses.fields(kio_type):
        values[field.name] = _value_to_kio(getattr(message, name_of(field)), field)
    return kio_type(**values)


def _value_to_kio(value: Any, field: "dataclasses.Field[Any]") -> Any:
    if isinstance(value, tuple):
        return tuple(_value_to_kio(element, field) for element in value)
    if isinstance(value, Message):
        return _to_kio(value, _struct_in(field.type))
    match field.metadata.get("kafka_type"):
        case "timedelta_i32":
            return i32Timedelta.parse(datetime.timedelta(milliseconds=value))
        case "timedelta_i64":
            return i64Timedelta.parse(datetime.timedelta(milliseconds=value))
        case "datetime_i64":
            return None if value == -1 else TZAware.parse(_EPOCH + datetime.timedelta(milliseconds=value))
        case "error_code":
            return KioErrorCode(value)
        case "uuid":
            return None if value == ZERO_UUID else value
    return value
