"""Confluent's wire format: which schema a record was written with.

Usually this is a prefix of the value: the magic byte 0, the id of the schema in four bytes, and for Protobuf the
message indexes. Newer serializers can put the schema's GUID into a header instead (`__key_schema_id`,
`__value_schema_id`): the magic byte 1, its 16 bytes, and for Protobuf the message indexes. The value then has no
prefix. A GUID as a prefix of the value is read as well.

Message indexes identify the message in a `.proto` file: [2, 0] is the first message inside of the third. They are a
count and the indexes, all as zigzag varints; the first message of a file, [0], is the single byte 0.
"""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from kaspar.base.varints import from_zigzag, read_uvarint, varlong
from kaspar.serialization.errors import UnreadableBytes

KEY_HEADER: Final = "__key_schema_id"
VALUE_HEADER: Final = "__value_schema_id"

_MAGIC_ID: Final = 0
_MAGIC_GUID: Final = 1
_ID: Final = struct.Struct(">bI")
_GUID_BYTES: Final = 16
_MAX_INDEXES: Final = 100
"""More than protoc accepts as the depth of nested messages."""
_MAX_VARINT_BYTES: Final = 5  # of 32 bits

FIRST_MESSAGE: Final = (0,)

SchemaKey = int | UUID
"""How a schema is looked up: by its id, or its GUID."""

Headers = Iterable[tuple[str, str | bytes | None]] | None


@dataclass(frozen=True, slots=True)
class Framed:
    """What the prefix or header of a record says about its schema. `start` is where the payload begins; for Protobuf
    this includes the message indexes, unless they are in the header: then `indexes` has their bytes."""

    schema: SchemaKey
    start: int
    indexes: bytes = b""


def id_prefix(schema_id: int) -> bytes:
    return _ID.pack(_MAGIC_ID, schema_id)


def guid_header(guid: UUID, message_indexes: Sequence[int] | None = None) -> bytes:
    """The value of the header. `message_indexes` are for Protobuf only."""
    return bytes((_MAGIC_GUID,)) + guid.bytes + (b"" if message_indexes is None else write_indexes(message_indexes))


def read_frame(data: bytes, headers: Headers = None, *, is_key: bool = False) -> Framed:
    """Read the prefix of a key or a value, or the record's header. Raises UnreadableBytes."""
    if headers:
        name = KEY_HEADER if is_key else VALUE_HEADER
        # The last one counts, as in Kafka's Headers.lastHeader.
        found = next((value for key, value in reversed(list(headers)) if key == name), None)
        if found is not None:
            header = found.encode("latin-1") if isinstance(found, str) else found
            framed = _read(header, f"the header {name}")
            return Framed(framed.schema, 0, header[framed.start :])
    return _read(data, "the key" if is_key else "the value")


def _read(data: bytes, where: str) -> Framed:
    if not data:
        raise UnreadableBytes(f"{where.capitalize()} is empty: no schema id is in front of it.")
    match data[0]:
        case 0:
            if len(data) < _ID.size:
                raise UnreadableBytes(
                    f"{where.capitalize()} has {len(data)} bytes: a magic byte and a schema id are {_ID.size}."
                )
            return Framed(_ID.unpack_from(data)[1], _ID.size)
        case 1:
            end = 1 + _GUID_BYTES
            if len(data) < end:
                raise UnreadableBytes(f"{where.capitalize()} has {len(data)} bytes: a GUID needs {end}.")
            return Framed(UUID(bytes=bytes(data[1:end])), end)
        case magic:
            raise UnreadableBytes(
                f"Unknown magic byte {magic} in {where}: it was not written by a serializer of a schema registry."
            )


def write_indexes(indexes: Sequence[int]) -> bytes:
    if tuple(indexes) == FIRST_MESSAGE:
        return b"\0"
    return b"".join(varlong(number) for number in (len(indexes), *indexes))


def read_indexes(data: bytes, start: int = 0) -> tuple[tuple[int, ...], int]:
    """The message indexes at this position, and where they end. Raises UnreadableBytes."""
    if start < len(data) and data[start] == 0:
        return FIRST_MESSAGE, start + 1
    count, position = _read_varint(data, start)
    if not 0 <= count <= _MAX_INDEXES:
        raise UnreadableBytes(f"The record claims to have {count} message indexes.")
    indexes = []
    for _ in range(count):
        index, position = _read_varint(data, position)
        if index < 0:
            raise UnreadableBytes(f"The record has the message index {index}.")
        indexes.append(index)
    return tuple(indexes) or FIRST_MESSAGE, position


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    read = read_uvarint(data, position, _MAX_VARINT_BYTES)
    if read is None:
        if len(data) - position < _MAX_VARINT_BYTES:
            raise UnreadableBytes("The record ends within its message indexes.")
        raise UnreadableBytes("A message index of the record has more than 32 bits.")
    raw, position = read
    return from_zigzag(raw), position
