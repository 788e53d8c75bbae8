"""Serdes by name: the values of `default.key.serde` and `default.value.serde`."""

from typing import Any

from kaspar.base.errors import InvalidSetting
from kaspar.streams.serdes.json_values import JSON
from kaspar.streams.serdes.numbers import DOUBLE, INTEGER, LONG, SHORT, SINGLE
from kaspar.streams.serdes.plain import BOOLEAN, RAW, TEXT, UUID_TEXT
from kaspar.streams.serdes.serde import Serde

_BY_NAME: dict[str, Serde[Any]] = {
    "text": TEXT,
    "raw": RAW,
    "short": SHORT,
    "integer": INTEGER,
    "long": LONG,
    "single": SINGLE,
    "double": DOUBLE,
    "boolean": BOOLEAN,
    "uuid": UUID_TEXT,
    "json": JSON,
}
_JAVA_PREFIX = "org.apache.kafka.common.serialization.Serdes$"
_BY_JAVA_CLASS: dict[str, Serde[Any]] = {  # without the prefix
    "StringSerde": TEXT,
    "ByteArraySerde": RAW,
    "BytesSerde": RAW,
    "ByteBufferSerde": RAW,
    "ShortSerde": SHORT,
    "IntegerSerde": INTEGER,
    "LongSerde": LONG,
    "FloatSerde": SINGLE,
    "DoubleSerde": DOUBLE,
    "BooleanSerde": BOOLEAN,
    "UUIDSerde": UUID_TEXT,
}


def serde_for(name_or_serde: Serde[Any] | str) -> Serde[Any]:
    """A serde by its short name or the name of its Java class. A serde object is returned unchanged."""
    if not isinstance(name_or_serde, str):
        if isinstance(name_or_serde, type) or not isinstance(name_or_serde, Serde):
            raise InvalidSetting(
                f"A serde must have the methods serialize(topic, value) and deserialize(topic, data), unlike "
                f"{name_or_serde!r}. Use one of kaspar.streams.serdes, such as serdes.text(), or its name: "
                f"{', '.join(_BY_NAME)}."
            )
        return name_or_serde
    if name_or_serde.startswith(_JAVA_PREFIX):
        known = _BY_JAVA_CLASS.get(name_or_serde.removeprefix(_JAVA_PREFIX))
    else:
        known = _BY_NAME.get(name_or_serde)
    if known is None:
        raise InvalidSetting(
            f"Unknown serde {name_or_serde!r}. Valid names are {', '.join(_BY_NAME)}, and Java class names such as "
            f"{_JAVA_PREFIX}StringSerde. Pass any other serde as an object, such as serdes.avro(schema)."
        )
    return known
