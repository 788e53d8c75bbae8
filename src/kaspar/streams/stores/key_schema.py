"""The keys of window and session stores, byte-equal to those in Java's changelogs (WindowKeySchema, SessionKeySchema).

A record's key comes first and has variable length: a scan between two of these keys also finds those of longer record
keys with the same prefix. Times are non-negative milliseconds, so that their bytes sort in the same order.
"""

import struct

MAX_TIME = (1 << 63) - 1
MAX_SEQUENCE_NUMBER = (1 << 31) - 1

_WINDOW = struct.Struct(">qi")  # start, sequence number
_SESSION = struct.Struct(">qq")  # end, start

WINDOW_SUFFIX_SIZE = _WINDOW.size
SESSION_SUFFIX_SIZE = _SESSION.size

window_suffix = _WINDOW.pack
"""The suffix of the record's key: the window's start, and a sequence number if duplicates are retained, or else 0."""
session_suffix = _SESSION.pack
"""The suffix of the record's key: the session's end, then its start."""
read_window_suffix = _WINDOW.unpack
read_session_suffix = _SESSION.unpack


def window_key(key: bytes, start: int, sequence_number: int = 0) -> bytes:
    return key + window_suffix(start, sequence_number)


def session_key(key: bytes, start: int, end: int) -> bytes:
    return key + session_suffix(end, start)


def window_start(store_key: bytes) -> int:
    start: int = _WINDOW.unpack_from(store_key, len(store_key) - WINDOW_SUFFIX_SIZE)[0]
    return start


def session_end(store_key: bytes) -> int:
    end: int = _SESSION.unpack_from(store_key, len(store_key) - SESSION_SUFFIX_SIZE)[0]
    return end
