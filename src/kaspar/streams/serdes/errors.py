"""The errors of serdes, with texts that say what to do instead."""

import dataclasses
from typing import Any
from uuid import UUID

from kaspar.streams.errors import StreamsError
from kaspar.streams.windows import Windowed

_SERDES: tuple[tuple[type, str], ...] = (  # the first match counts: a bool is an int, and a Windowed is a tuple
    (Windowed, "windowed(...)"),
    (str, "text()"),
    (bytes, "raw()"),
    (bool, "boolean()"),
    (int, "long()"),
    (float, "double()"),
    (UUID, "uuid()"),
    (dict, "json()"),
    (list, "json()"),
    (tuple, "json()"),
)
_BYTES_SHOWN = 16


class SerializationError(StreamsError):
    """A value that a serde cannot write, or bytes that it cannot read."""


def wrong_type(serde: str, topic: str, value: object, expected: str) -> SerializationError:
    """The error for a value of a type that needs another serde."""
    return SerializationError(
        f"The {serde} serde cannot write {kind_of(value)} to topic {topic}: set key_serde or value_serde to "
        f"serdes.{_serde_of(value)}, or convert it to {expected}."
    )


def unwritable(serde: str, topic: str, value: object, advice: str) -> SerializationError:
    """The error for a value of a suitable type that cannot be written."""
    return SerializationError(f"The {serde} serde cannot write {kind_of(value)} to topic {topic}: {advice}.")


def unreadable(serde: str, topic: str, data: bytes, reason: str) -> SerializationError:
    shown = data[:_BYTES_SHOWN].hex() + ("..." if len(data) > _BYTES_SHOWN else "")
    return SerializationError(
        f"The {serde} serde cannot read {len(data)} bytes ({shown or 'empty'}) of topic {topic}: {reason}. Set "
        "key_serde or value_serde to the serde that the topic was written with."
    )


def kind_of(value: object) -> str:
    """The type of a value with its article: "an int"."""
    name = type(value).__name__
    return f"{'an' if name[0] in 'AEIOaeio' else 'a'} {name}"


def reason_of(error: Exception) -> str:
    """The text of another library's error, in a form that fits into a sentence."""
    return str(error).strip().rstrip(".") or type(error).__name__


def _serde_of(value: Any) -> str:
    cls = type(value)
    for written, serde in _SERDES:
        if issubclass(cls, written):
            return serde
    if hasattr(cls, "DESCRIPTOR"):
        return f"protobuf({cls.__name__})"
    is_structured = dataclasses.is_dataclass(cls) or hasattr(cls, "__struct_fields__") or hasattr(cls, "model_fields")
    return f"structured({cls.__name__})" if is_structured else "of(serializer, deserializer)"
