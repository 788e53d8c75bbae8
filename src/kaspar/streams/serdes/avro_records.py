"""Values in Avro's binary encoding with a given schema, without a file header. They have no schema id either, except
with a registry (registered_avro.py)."""

import functools
import io
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kaspar.streams.serdes.errors import SerializationError, reason_of, unreadable, unwritable
from kaspar.streams.serdes.serde import Serde


class _Avro:
    __slots__ = ("_read", "_schema", "_text", "_write")

    def __init__(self, text: str) -> None:
        from fastavro import schemaless_reader, schemaless_writer

        self._text = text
        self._schema = _parsed(text)
        self._read: Callable[..., Any] = schemaless_reader
        self._write = schemaless_writer
        if _is_recursive(text):
            # The compiled reader overflows the stack for endlessly nested values; this one raises an exception.
            from fastavro._read_py import schemaless_reader as checked_reader

            self._read = checked_reader

    def serialize(self, topic: str, value: Any) -> bytes | None:
        if value is None:
            return None
        stream = io.BytesIO()
        try:
            # A field that is not in the schema is rejected: it is more likely misspelt than unwanted.
            self._write(stream, self._schema, value, strict_allow_default=True)
        except Exception as error:  # fastavro raises many kinds
            raise unwritable("avro", topic, value, f"it does not match the schema ({reason_of(error)})") from error
        return stream.getvalue()

    def deserialize(self, topic: str, data: bytes | None) -> Any:
        if data is None:
            return None
        stream = io.BytesIO(data)
        try:
            value = self._read(stream, self._schema, None)
        except Exception as error:  # fastavro raises many kinds
            raise unreadable(
                "avro", topic, data, f"they are not Avro data of the schema ({reason_of(error)})"
            ) from error
        if stream.tell() != len(data):
            raise unreadable("avro", topic, data, f"{len(data) - stream.tell()} bytes are left over")
        return value

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return avro, (self._text,)


def avro(
    schema: Mapping[str, Any] | Sequence[Any] | str | None,
    *,
    registry: str | Mapping[str, str] | None = None,
    is_key: bool = False,
) -> Serde[Any]:
    """Values of an Avro schema, which is given as a dict or as JSON text. Records are dicts.

    With `registry`, a URL or a dict of Confluent's properties, each value is prefixed with the schema's id. Values are
    read with the schema with which they were written, and converted to `schema` unless that is None. `is_key` is for
    serdes of keys: the subjects of keys and values differ.
    """
    text = schema if schema is None or isinstance(schema, str) else json.dumps(schema)
    if registry is not None:
        from kaspar.streams.serdes.registered_avro import registered_avro

        return registered_avro(text, registry, is_key)
    if text is None:
        raise SerializationError("serdes.avro needs a schema, or a registry to read schemas from.")
    return _Avro(text)


@functools.lru_cache(maxsize=256)
def _is_recursive(text: str) -> bool:
    """Whether the schema is recursive. Also true for a schema that only fastavro accepts."""
    from kaspar.schemas.schema import InvalidSchema
    from kaspar.serialization.avro_schemas import is_recursive, load_schema

    try:
        return is_recursive(load_schema(text, {}))
    except InvalidSchema:
        return True


@functools.lru_cache(maxsize=256)
def _parsed(text: str) -> Any:
    """Parse a schema. Cached, because every task unpickles its own serde."""
    import fastavro

    try:
        return fastavro.parse_schema(json.loads(text))
    except Exception as error:  # fastavro's own kinds, KeyError and more
        raise SerializationError(f"The Avro schema is invalid ({type(error).__name__}: {reason_of(error)}).") from error
