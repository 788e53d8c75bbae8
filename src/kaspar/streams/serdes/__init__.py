"""Serdes: convert keys and values to bytes and back. Numbers, text and windowed keys are byte-equal to Java's.

    builder.stream("trades", key_serde=serdes.text(), value_serde=serdes.structured(Trade))

A serde is passed to an operator, or by name in the settings `default.key.serde` and `default.value.serde`. Every serde
converts `None` to null and back. Any class with the two methods of `Serde` is a serde too; `of` creates one from two
functions. Serdes are sent to Spark's workers with the topology: they are pickled as the call that created them.
"""

from kaspar.streams.serdes.avro_records import avro
from kaspar.streams.serdes.errors import SerializationError
from kaspar.streams.serdes.json_values import json, json_schema
from kaspar.streams.serdes.lists import list_of
from kaspar.streams.serdes.named import serde_for
from kaspar.streams.serdes.numbers import double, integer, long, short, single
from kaspar.streams.serdes.own_functions import of
from kaspar.streams.serdes.plain import boolean, raw, text, uuid
from kaspar.streams.serdes.protobuf_messages import protobuf
from kaspar.streams.serdes.serde import Serde
from kaspar.streams.serdes.structured_values import structured
from kaspar.streams.serdes.windowed_keys import session_windowed, windowed

__all__ = [
    "Serde",
    "SerializationError",
    "avro",
    "boolean",
    "double",
    "integer",
    "json",
    "json_schema",
    "list_of",
    "long",
    "of",
    "protobuf",
    "raw",
    "serde_for",
    "session_windowed",
    "short",
    "single",
    "structured",
    "text",
    "uuid",
    "windowed",
]
