"""The few parts of DER, the encoding of certificates, that the libraries in use do not offer."""

from kaspar.base.errors import InvalidSetting


def content(encoded: bytes, position: int = 0) -> bytes:
    """The content of the element at this position."""
    start, stop = _bounds(encoded, position)
    return encoded[start:stop]


def end(encoded: bytes, position: int = 0) -> int:
    """The end of the element at this position."""
    return _bounds(encoded, position)[1]


def _bounds(encoded: bytes, position: int) -> tuple[int, int]:
    try:
        length, start = encoded[position + 1], position + 2
    except IndexError:
        raise InvalidSetting("DER ends in the middle of an element") from None
    if length & 0x80:
        size = length & 0x7F
        length, start = int.from_bytes(encoded[start : start + size], "big"), start + size
    if start + length > len(encoded):
        raise InvalidSetting("DER ends in the middle of an element")
    return start, start + length
