"""Reads and writes any message of kaspar/protocol/messages, and any struct inside one, at any of its versions.

    request, position = read(MetadataRequest, 12, buffer, position)
    body = write(MetadataResponse(brokers=..., topics=...), 12)

Reading raises MalformedBytes for anything else, allocates nothing for bytes that were not sent, and reads no more than
`max_elements` array elements. Unknown tagged fields are skipped, as Kafka does. Writing raises ValueError for a null
that the version does not allow and struct.error for a number out of range: both are bugs of the caller.
"""

from kaspar.protocol.core import structs, wire

__all__ = ["array_length", "compact_string", "is_flexible", "read", "write", "write_into"]

array_length = structs.array_length
is_flexible = structs.is_flexible
read = structs.read
write = structs.write
write_into = structs.write_into


def compact_string(text: str) -> bytes:
    out = bytearray()
    wire.write_string(out, text, True)
    return bytes(out)
