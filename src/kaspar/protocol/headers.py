"""The headers before every request and response, and the frame around them.

A request header has version 2 if the API's version is flexible and version 1 otherwise; a response header has 1 and 0.
Kafka has two exceptions: the client id is never in the compact form, and an ApiVersions response always has header
version 0, since a client reads it before it knows what the broker supports. A client id is only a name for logs and
metrics, so one that is not UTF-8 is accepted.
"""

import struct
from typing import NamedTuple

from kaspar.base.errors import MalformedBytes
from kaspar.base.named_tuples import new_tuple
from kaspar.protocol.api_keys import KNOWN_VERSIONS, ApiKey
from kaspar.protocol.core import wire

SIZE_BYTES = 4  # of the length before each frame

_FRAME_SIZE = struct.Struct(">I")
_START = struct.Struct(">hhih")
_SIZE_AND_CORRELATION_ID = struct.Struct(">Ii")
_CLIENT_ID_AT = _START.size

# For each API key, the first version with flexible headers.
_FIRST_FLEXIBLE = {int(key): first if first >= 0 else 0x8000 for key, (_, _, first) in KNOWN_VERSIONS.items()}
_FIRST_FLEXIBLE_RESPONSE = _FIRST_FLEXIBLE | {int(ApiKey.API_VERSIONS): 0x8000}


class RequestHeader(NamedTuple):
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body_position: int


def request_header_is_flexible(api_key: int, api_version: int) -> bool:
    return api_version >= _FIRST_FLEXIBLE.get(api_key, 0x8000)


def response_header_is_flexible(api_key: int, api_version: int) -> bool:
    return api_version >= _FIRST_FLEXIBLE_RESPONSE.get(api_key, 0x8000)


def read_request_header(buffer: wire.Buffer, position: int = 0) -> RequestHeader:
    """Read the header of the request at that position of the buffer (after its length).

    The caller refuses unknown API keys and versions. The header of an unknown version is read like that of the newest
    one, as Kafka does for the ApiVersions request of a newer client.
    """
    body_position = position + _CLIENT_ID_AT
    try:
        api_key, api_version, correlation_id, length = _START.unpack_from(buffer, position)
    except struct.error:
        raise MalformedBytes(f"{len(buffer) - position} bytes are too few for a request header") from None
    client_id = None
    if length >= 0:
        start = body_position
        body_position = start + length
        if body_position > len(buffer):
            raise MalformedBytes(f"a client id of {length} bytes, but {len(buffer) - start} are left")
        client_id = str(buffer[start:body_position], "utf-8", "replace")
    if api_version >= _FIRST_FLEXIBLE.get(api_key, 0x8000):
        if body_position < len(buffer) and buffer[body_position] == 0:  # no tagged fields: the usual case
            body_position += 1
        else:
            reader = wire.Reader(buffer, body_position)
            reader.tagged_fields()
            body_position = reader.position
    return new_tuple(RequestHeader, (api_key, api_version, correlation_id, client_id, body_position))


def write_request_header(api_key: int, api_version: int, correlation_id: int, client_id: str | None) -> bytearray:
    out = bytearray(struct.pack(">hhi", api_key, api_version, correlation_id))
    wire.write_string(out, client_id, False)
    if request_header_is_flexible(api_key, api_version):
        out.append(0)
    return out


def read_response_header(api_key: int, api_version: int, buffer: wire.Buffer, position: int = 0) -> tuple[int, int]:
    """Return the correlation id and the position of the body."""
    reader = wire.Reader(buffer, position)
    correlation_id = reader.int32()
    if response_header_is_flexible(api_key, api_version):
        reader.tagged_fields()
    return correlation_id, reader.position


def start_response(api_key: int, api_version: int, correlation_id: int) -> bytearray:
    """Return a buffer with room for the frame's length and with the response header; the body is appended to it."""
    out = bytearray(_SIZE_AND_CORRELATION_ID.pack(0, correlation_id))
    if response_header_is_flexible(api_key, api_version):
        out.append(0)
    return out


def set_frame_size(out: bytearray, size: int | None = None) -> None:
    """Fill in the length of the frame that `out` starts: its own, or that of all buffers of the response together.

    The length on the wire does not count its own four bytes; `size` does.
    """
    _FRAME_SIZE.pack_into(out, 0, (len(out) if size is None else size) - SIZE_BYTES)


def frame(body: bytes | bytearray) -> bytes:
    """The body, preceded by its length."""
    return struct.pack(">I", len(body)) + body
