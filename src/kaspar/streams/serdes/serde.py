"""The interface of a serde (Kafka's Serde, Serializer and Deserializer in one)."""

from typing import Protocol, TypeVar, runtime_checkable

T = TypeVar("T")


@runtime_checkable
class Serde(Protocol[T]):
    """Raises SerializationError for a value that it cannot write, and for bytes that it cannot read.

    The topic is the one that the bytes are written to or read from; for a state store, its changelog topic.
    """

    def serialize(self, topic: str, value: T | None) -> bytes | None: ...

    def deserialize(self, topic: str, data: bytes | None) -> T | None: ...
