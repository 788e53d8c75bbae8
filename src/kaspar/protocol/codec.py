"""Reads and writes any message of kaspar/protocol/messages, and any struct inside one, at any of its versions.

    request, position = read(MetadataRequest, 12, buffer, position)
    body = write(MetadataResponse(brokers=..., topics=...), 12)

Reading raises MalformedBytes for whatever is not such a message, and takes no memory that the bytes do not account
for, nor for more than `max_elements` elements of arrays. Tagged fields that are not known are skipped, as Kafka does.
Writing raises ValueError for a null that the version cannot carry and struct.error for a number that does not fit:
those are mistakes of the program.
"""

from kaspar.protocol.core import structs

__all__ = ["array_length", "is_flexible", "read", "write", "write_into"]

array_length = structs.array_length
is_flexible = structs.is_flexible
read = structs.read
write = structs.write
write_into = structs.write_into
