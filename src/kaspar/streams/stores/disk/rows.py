"""The keys of rows in LMDB: all stores of a partition share one ordered map, and each has a number as key prefix.

LMDB's keys have at most 511 bytes. A longer key is truncated, a hash replaces the rest, and the whole key is stored
with the value. Only such keys are stored with 511 bytes. Keys with the same first 493 bytes may therefore be out of
order in LMDB: scans have to sort them.
"""

from hashlib import blake2b

MAX_SIZE = 511
PREFIX_SIZE = 2
HASH_SIZE = 16
STEM_SIZE = MAX_SIZE - HASH_SIZE
"""The number of bytes of a truncated key, with the prefix. LMDB keys with at most this number of bytes are in order."""
MAX_PLAIN_SIZE = MAX_SIZE - PREFIX_SIZE - 1
"""The maximum size of a store's key that is stored unchanged."""

_LENGTH_SIZE = 4


def store_prefix(number: int) -> bytes:
    return number.to_bytes(PREFIX_SIZE)


def lmdb_key(prefix: bytes, key: bytes) -> bytes:
    if len(key) <= MAX_PLAIN_SIZE:
        return prefix + key
    return (prefix + key)[:STEM_SIZE] + blake2b(key, digest_size=HASH_SIZE).digest()


def lmdb_row(prefix: bytes, key: bytes, value: bytes) -> tuple[bytes, bytes]:
    if len(key) <= MAX_PLAIN_SIZE:
        return prefix + key, value
    return lmdb_key(prefix, key), len(key).to_bytes(_LENGTH_SIZE) + key + value


def store_row(lmdb_key: bytes, data: bytes) -> tuple[bytes, bytes]:
    """The store's key and value of a row in LMDB."""
    if len(lmdb_key) < MAX_SIZE:
        return lmdb_key[PREFIX_SIZE:], data
    end = _LENGTH_SIZE + int.from_bytes(data[:_LENGTH_SIZE])
    return data[_LENGTH_SIZE:end], data[end:]


def lmdb_bounds(prefix: bytes, first: bytes | None, last: bytes | None) -> tuple[bytes, bytes, bool]:
    """The bounds of a range in LMDB, and whether there may be other rows within them."""
    low = prefix if first is None else (prefix + first)[:STEM_SIZE]
    if last is None:
        high = store_prefix(int.from_bytes(prefix) + 1)
    elif len(prefix + last) <= STEM_SIZE:
        high = prefix + last
    else:
        high = (prefix + last)[:STEM_SIZE] + b"\xff" * HASH_SIZE
    return low, high, max(len(first or b""), len(last or b"")) + PREFIX_SIZE > STEM_SIZE
