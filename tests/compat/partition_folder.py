"""A partition's folder as a stopped broker leaves it, and what the tests need to know about its files."""

import random
import re
import struct
from collections.abc import Iterator
from pathlib import Path

from tests.compat.drivers.api import Codec, Driver, Record

TOPIC = "moved"
TOPIC_CONFIG = {"segment.bytes": "1048576", "index.interval.bytes": "4096"}
CODECS: tuple[Codec, ...] = ("none", "gzip", "snappy", "lz4", "zstd")

_HEADER = struct.Struct(">qiibIhi")  # base offset, length, leader epoch, magic, CRC, attributes, last offset delta
_OVERHEAD = 12  # the length field does not count itself and the base offset


def fill(driver: Driver, topic: str) -> int:
    """Write several segments: every codec, idempotent and not, nulls, headers. Returns the end offset."""
    randomly = random.Random(1)
    offsets: list[int] = []
    for round_number in range(2):
        for codec in CODECS:
            headers = (("codec", codec.encode()),)
            records = [Record(randomly.randbytes(2500) + bytes(500), b"key-%d" % n, headers) for n in range(150)]
            records += [Record(None, b"tombstone"), Record(b"", b"empty"), Record(b"no key")]
            offsets = driver.produce(topic, records, codec=codec, idempotent=round_number == 1)
    return offsets[-1] + 1


def segments(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.log"))


def stored_codecs(folder: Path) -> set[Codec]:
    """The codecs of the batches in a partition's log, read from their headers."""
    return {CODECS[attributes & 7] for segment in segments(folder) for attributes in _attributes(segment.read_bytes())}


def _attributes(log: bytes) -> Iterator[int]:
    position = 0
    while position + _HEADER.size <= len(log):
        _, length, _, _, _, attributes, _ = _HEADER.unpack_from(log, position)
        if length <= 0:
            return  # space that was reserved and not written yet
        yield attributes
        position += length + _OVERHEAD


def topic_id(folder: Path) -> str:
    found = re.search(r"^topic_id: (\S+)$", (folder / "partition.metadata").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]
