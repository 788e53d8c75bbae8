"""Typical commits are encoded and decoded by a fast path with the same result."""

import random
import uuid

import pytest

from kaspar.base.errors import MalformedBytes
from kaspar.coordination import StoredRecord
from kaspar.groups.offsets.records import OffsetCommitKey, OffsetCommitValue, read_commit, write_commit
from kaspar.groups.records import KINDS, decode, encode
from tests.unit.groups.record_samples import random_message
from tests.unit.protocol.mutation import mutate

USUAL = [
    OffsetCommitValue(offset=5, leader_epoch=2, metadata="", commit_timestamp=7),
    OffsetCommitValue(offset=2**63 - 1, metadata="", commit_timestamp=-(2**63), topic_id=uuid.UUID(int=1)),
]
UNUSUAL = [
    OffsetCommitValue(offset=5, metadata="m", commit_timestamp=7),
    OffsetCommitValue(offset=5, metadata="", commit_timestamp=7, expire_timestamp=9),
]
KEY = OffsetCommitKey(group="größe", topic="🦊", partition=-1)


@pytest.mark.parametrize("value", USUAL)
def test_usual_commit_takes_the_short_way(value: OffsetCommitValue) -> None:
    written = write_commit(KEY, value)
    assert written == KINDS.encode(StoredRecord(KEY, value))
    assert read_commit(*written) == StoredRecord(KEY, value)


@pytest.mark.parametrize("value", UNUSUAL)
def test_unusual_commit_takes_the_long_way(value: OffsetCommitValue) -> None:
    assert write_commit(KEY, value) is None
    written = encode(StoredRecord(KEY, value))
    assert read_commit(*written) is None
    assert decode(*written) == StoredRecord(KEY, value)


def test_name_that_no_record_can_hold_is_refused_on_both_ways() -> None:
    with pytest.raises(ValueError, match="32768 bytes"):
        encode(StoredRecord(OffsetCommitKey(group="x" * 32768, topic="t", partition=0), USUAL[0]))


@pytest.mark.parametrize("seed", range(300))
def test_short_way_reads_nothing_that_the_long_way_would_read_otherwise(seed: int) -> None:
    randomness = random.Random(seed)
    key = random_message(OffsetCommitKey, 0, randomness)
    value = random_message(OffsetCommitValue, randomness.choice((3, 4)), randomness)
    if randomness.random() < 0.8:
        value = OffsetCommitValue(offset=value.offset, metadata="", commit_timestamp=1, topic_id=value.topic_id)
    written_key, written_value = KINDS.encode(StoredRecord(key, value))
    assert written_value is not None
    for _ in range(20):
        damaged = mutate(written_key, randomness), mutate(written_value, randomness)
        for some_key, some_value in ((written_key, damaged[1]), (damaged[0], written_value), damaged):
            read = read_commit(some_key, some_value)
            if read is not None:
                assert read == KINDS.decode(some_key, some_value)


@pytest.mark.parametrize("octets", [b"", b"\0", b"\0\x01", b"\0\x01\0", b"\0\x01\0\0"])
def test_bytes_that_are_no_key_are_refused(octets: bytes) -> None:
    written = write_commit(KEY, USUAL[0])
    assert written is not None
    with pytest.raises(MalformedBytes):
        decode(octets, written[1])
