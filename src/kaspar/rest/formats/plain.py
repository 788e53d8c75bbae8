"""The formats without schemas: binary, as base64 text, and JSON."""

import base64
import binascii
from typing import Final

import msgspec

from kaspar.rest.errors import BAD_REQUEST, RestError
from kaspar.rest.formats import UndecodableRecord

NULL: Final = msgspec.Raw(b"null")
_SHOWN: Final = 100

_text: Final = msgspec.json.Decoder(str)
_any: Final = msgspec.json.Decoder(msgspec.Raw)


def encode_binary(raw: msgspec.Raw) -> bytes | None:
    """Decodes base64 strictly, except that padding may be left out, as in Confluent's proxy."""
    if raw == NULL:
        return None
    try:
        text = _text.decode(raw)
    except msgspec.MsgspecError:
        raise RestError(BAD_REQUEST, f"data={_shown(raw)} is not a base64 string.") from None
    try:
        return decode_base64(text)
    except ValueError:
        raise RestError(BAD_REQUEST, f"data={_shown(raw)} is not a valid base64 string.") from None


def decode_base64(text: str) -> bytes:
    """Raises ValueError."""
    if not text.endswith("="):
        text += "=" * (-len(text) % 4)
    return binascii.a2b_base64(text, strict_mode=True)


def encode_json(raw: msgspec.Raw) -> bytes | None:
    """The JSON without white space."""
    return None if raw == NULL else msgspec.json.format(bytes(raw), indent=-1)


def decode_binary(data: bytes | None) -> msgspec.Raw:
    return NULL if data is None else msgspec.Raw(b'"' + base64.b64encode(data) + b'"')


def decode_json(data: bytes | None) -> msgspec.Raw:
    if data is None:
        return NULL
    try:
        str(data, "utf-8")
        return _any.decode(data)
    except (UnicodeDecodeError, msgspec.MsgspecError, RecursionError) as problem:
        raise UndecodableRecord(f"it is not JSON: {problem}") from None


def _shown(raw: msgspec.Raw) -> str:
    text = bytes(raw).decode("utf-8", "replace")
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
