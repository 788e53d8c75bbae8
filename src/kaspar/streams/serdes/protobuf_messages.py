"""Messages of a class that protoc generated, in Protobuf's binary encoding.

The encoding is deterministic (maps are sorted by key), so equal keys have equal bytes and go to the same partition.
"""

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from kaspar.streams.serdes.errors import SerializationError, reason_of, unreadable, unwritable, wrong_type
from kaspar.streams.serdes.serde import Serde

M = TypeVar("M")


class _Protobuf(Generic[M]):
    __slots__ = ("_class", "_name", "_parse")

    def __init__(self, message_class: Any) -> None:
        self._class: type[M] = message_class
        self._parse: Callable[[bytes], M] = message_class.FromString
        self._name = f"protobuf({message_class.__name__})"

    def serialize(self, topic: str, value: M | None) -> bytes | None:
        if value is None:
            return None
        if not isinstance(value, self._class):
            raise wrong_type(self._name, topic, value, self._class.__name__)
        message: Any = value
        try:
            written: bytes = message.SerializeToString(deterministic=True)
        except Exception as error:  # EncodeError, which is not imported because protobuf is optional
            raise unwritable(self._name, topic, value, reason_of(error)) from error
        return written

    def deserialize(self, topic: str, data: bytes | None) -> M | None:
        if data is None:
            return None
        try:
            return self._parse(data)
        except Exception as error:  # DecodeError
            raise unreadable(self._name, topic, data, reason_of(error)) from error

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[type[M]]]:
        return protobuf, (self._class,)


def protobuf(
    message_class: type[M], *, registry: str | Mapping[str, str] | None = None, is_key: bool = False
) -> Serde[M]:
    """Messages of a generated class. Its module must be installed wherever the program runs.

    With `registry`, a URL or a dict of Confluent's properties, each message is prefixed with the id of its schema.
    `is_key` is for serdes of keys: the subjects of keys and values differ.
    """
    if not hasattr(message_class, "FromString") or not hasattr(message_class, "DESCRIPTOR"):
        raise SerializationError(f"serdes.protobuf takes a message class that protoc generated, not {message_class!r}.")
    if registry is not None:
        from kaspar.streams.serdes.registered_protobuf import registered_protobuf

        return registered_protobuf(message_class, registry, is_key)
    return _Protobuf(message_class)
