"""Varints for code that is not compiled: groups of seven bits, the lowest first. Compiled code uses primitives.py.

A varlong is signed and zigzag-encoded, as in Kafka's records and in Avro; a uvarint is unsigned, as in Protobuf.
"""


def varlong(number: int) -> bytes:
    written = bytearray()
    append_varlong(written, number)
    return bytes(written)


def append_varlong(target: bytearray, number: int) -> None:
    raw = (number << 1) ^ (number >> 63)
    while raw > 0x7F:
        target.append(raw & 0x7F | 0x80)
        raw >>= 7
    target.append(raw)


def read_uvarint(data: bytes, position: int, max_bytes: int) -> tuple[int, int] | None:
    """Read a number. Returns it and where it ends; None if it does not end within `max_bytes` and before the data
    does.
    """
    if position < len(data) and data[position] < 0x80:  # the usual case
        return data[position], position + 1
    number = 0
    for index, octet in enumerate(data[position : position + max_bytes]):
        number |= (octet & 0x7F) << 7 * index
        if octet < 0x80:
            return number, position + index + 1
    return None


def from_zigzag(raw: int) -> int:
    """The signed number that a uvarint represents."""
    return (raw >> 1) ^ -(raw & 1)
