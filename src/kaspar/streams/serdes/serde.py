"""The interface of a serde (Kafka's Serde, Serializer and Deserializer in one)."""

from typing import Protocol, TypeVar, runtime_checkable

T = TypeVar("T")


@runtime_checkable
class Serde(Protocol[T]):
    """The methods raise SerializationError for a value that cannot be written, or for bytes that cannot be read.

    `topic` is the topic that the bytes are written to or read from; for a state store, its changelog topic.
    """

    def serialize(self, topic: str, value: T | None) -> bytes | None: ...

    def deserialize(self, topic: str, data: bytes | None) -> T | None: ...
