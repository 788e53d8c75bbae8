"""Instances of a class as JSON: dataclasses, msgspec Structs and pydantic models.

Reading checks the types of all fields, and ignores fields that the class does not have. pydantic is used only for its
own classes, and need not be installed otherwise.
"""

import dataclasses
import sys
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

from kaspar.streams.serdes.class_pickling import check_picklable, make_picklable
from kaspar.streams.serdes.errors import SerializationError, reason_of, unreadable, unwritable, wrong_type
from kaspar.streams.serdes.serde import Serde

T = TypeVar("T")


class _Structured(Generic[T]):
    __slots__ = ("_class", "_decode", "_encode", "_name")

    def __init__(self, cls: type[T], encode: Callable[[T], bytes], decode: Callable[[bytes], T]) -> None:
        self._class = cls
        self._encode = encode
        self._decode = decode
        self._name = f"structured({cls.__name__})"

    def serialize(self, topic: str, value: T | None) -> bytes | None:
        if value is None:
            return None
        if not isinstance(value, self._class):
            raise wrong_type(self._name, topic, value, self._class.__name__)
        try:
            return self._encode(value)
        except Exception as error:  # a field's type may have its own hooks, which may raise anything
            raise unwritable(self._name, topic, value, reason_of(error)) from error

    def deserialize(self, topic: str, data: bytes | None) -> T | None:
        if data is None:
            return None
        try:
            return self._decode(data)
        except Exception as error:  # as above: __post_init__, validators
            raise unreadable(self._name, topic, data, reason_of(error)) from error

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[type[T]]]:
        check_picklable(self._class)
        return structured, (self._class,)


def structured(cls: type[T]) -> Serde[T]:
    """Instances of a dataclass, a msgspec Struct or a pydantic model."""
    if not isinstance(cls, type):
        raise SerializationError(f"serdes.structured takes a class, not {cls!r}.")
    if _is_pydantic(cls):
        adapter = sys.modules["pydantic"].TypeAdapter(cls)
        return _Structured(cls, adapter.dump_json, adapter.validate_json)
    if not (dataclasses.is_dataclass(cls) or issubclass(cls, msgspec.Struct)):
        raise SerializationError(
            f"serdes.structured takes a dataclass, a msgspec Struct or a pydantic model, not {cls.__name__}. For "
            "dicts and lists use serdes.json()."
        )
    try:
        decoder = msgspec.json.Decoder(cls)
        make_picklable(cls)
    except (TypeError, NameError) as error:  # NameError: an unresolved forward reference
        raise SerializationError(
            f"The fields of {cls.__name__} cannot be represented as JSON: {reason_of(error)}."
        ) from error
    return _Structured(cls, msgspec.json.Encoder().encode, decoder.decode)


def _is_pydantic(cls: type) -> bool:
    """Whether it is a pydantic model or dataclass. Such a class can exist only if pydantic was imported."""
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and (issubclass(cls, pydantic.BaseModel) or "__pydantic_validator__" in vars(cls))
