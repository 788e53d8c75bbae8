"""Values in Avro's binary form by a given schema, without a file header and without a schema id."""

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
        self._read = schemaless_reader
        self._write = schemaless_writer

    def serialize(self, topic: str, value: Any) -> bytes | None:
        if value is None:
            return None
        stream = io.BytesIO()
        try:
            # A field that the schema does not have is refused: it is more likely misspelt than unwanted.
            self._write(stream, self._schema, value, strict_allow_default=True)
        except Exception as error:  # fastavro raises many kinds
            raise unwritable("avro", topic, value, f"it is not of the schema ({reason_of(error)})") from error
        return stream.getvalue()

    def deserialize(self, topic: str, data: bytes | None) -> Any:
        if data is None:
            return None
        stream = io.BytesIO(data)
        try:
            value = self._read(stream, self._schema, None)
        except Exception as error:  # fastavro raises many kinds
            raise unreadable("avro", topic, data, f"they are not Avro of the schema ({reason_of(error)})") from error
        if stream.tell() != len(data):
            raise unreadable("avro", topic, data, f"{len(data) - stream.tell()} bytes are left over")
        return value

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return avro, (self._text,)


def avro(schema: Mapping[str, Any] | Sequence[Any] | str) -> Serde[Any]:
    """Values of an Avro schema, which is given as a dict or as its JSON text. Records are dicts."""
    return _Avro(schema if isinstance(schema, str) else json.dumps(schema))


@functools.lru_cache(maxsize=256)
def _parsed(text: str) -> Any:
    """Parsed once in a process, though every task unpickles its own serde."""
    import fastavro

    try:
        return fastavro.parse_schema(json.loads(text))
    except Exception as error:  # fastavro's own kinds, KeyError and more
        raise SerializationError(f"The Avro schema is invalid ({type(error).__name__}: {reason_of(error)}).") from error
