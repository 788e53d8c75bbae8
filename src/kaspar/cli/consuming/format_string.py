"""`--format`: prints records in the format language of kcat's option -f.

%s value     %S its length, -1 if null     %R its length as 4 big-endian bytes
%k key       %K its length, -1 if null     %T timestamp in milliseconds
%t topic     %p partition    %o offset     %h headers: name=value,...     %% a percent sign
\\n \\r \\t \\\\ \\0 and \\xNN stand for these bytes
"""

import re
import struct
from collections.abc import Callable
from typing import Final

from kaspar.cli.records.record import ReadRecord

_PIECES: Final = re.compile(r"%(?P<code>.)|\\x(?P<hex>[0-9a-fA-F]{2})|\\(?P<escape>.)|(?P<text>[^%\\]+)", re.DOTALL)
_ESCAPES: Final = {"n": b"\n", "r": b"\r", "t": b"\t", "\\": b"\\", "0": b"\0"}


def _length(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _headers(record: ReadRecord) -> bytes:
    return b",".join(name.encode() + b"=" + (b"NULL" if value is None else value) for name, value in record.raw.headers)


_CODES: Final[dict[str, Callable[[ReadRecord], bytes]]] = {
    "s": lambda record: record.value_bytes() or b"",
    "S": lambda record: b"%d" % _length(record.raw.value),
    "R": lambda record: struct.pack(">i", _length(record.raw.value)),
    "k": lambda record: record.key_bytes() or b"",
    "K": lambda record: b"%d" % _length(record.raw.key),
    "T": lambda record: b"%d" % record.raw.timestamp_ms,
    "t": lambda record: record.raw.topic.encode(),
    "p": lambda record: b"%d" % record.raw.partition,
    "o": lambda record: b"%d" % record.raw.offset,
    "h": _headers,
    "%": lambda record: b"%",
}


def compile_format(text: str) -> Callable[[ReadRecord], bytes]:
    """Compile a format. Raises ValueError with a message for users."""
    pieces: list[Callable[[ReadRecord], bytes] | bytes] = []
    position = 0
    while position < len(text):
        match = _PIECES.match(text, position)
        if match is None:
            raise ValueError(f"'{text}' ends with an incomplete '{text[position]}': write it twice for a literal one")
        pieces.append(_piece(match))
        position = match.end()
    return lambda record: b"".join(each if isinstance(each, bytes) else each(record) for each in pieces)


def _piece(match: re.Match[str]) -> Callable[[ReadRecord], bytes] | bytes:
    if (code := match["code"]) is not None:
        if code not in _CODES:
            raise ValueError(f"unknown format code '%{code}'; valid codes: {' '.join(f'%{each}' for each in _CODES)}")
        return _CODES[code]
    if match["hex"] is not None:
        return bytes.fromhex(match["hex"])
    if (escape := match["escape"]) is not None:
        if escape not in _ESCAPES:
            raise ValueError(f"'\\{escape}' is not a valid escape; valid escapes: \\n \\r \\t \\\\ \\0 and \\xNN")
        return _ESCAPES[escape]
    return match["text"].encode()
