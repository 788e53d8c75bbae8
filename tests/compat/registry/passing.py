"""Words that the tests of registry clients share."""

from typing import Any, Protocol

from confluent_kafka.serialization import MessageField, SerializationContext


class Pass(Protocol):
    def __call__(self, value: bytes | None, headers: Any = None) -> tuple[bytes | None, Any]:
        """Produce a record and consume it: its value and headers."""


def value_of(topic: str, headers: Any = None) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE, [] if headers is None else headers)


def key_of(topic: str, headers: Any = None) -> SerializationContext:
    return SerializationContext(topic, MessageField.KEY, [] if headers is None else headers)
