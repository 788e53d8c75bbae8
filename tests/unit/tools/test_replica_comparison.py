"""kafka-replica-verification: which batches are compared, and what is reported."""

import re

import pytest

from kaspar.base.errors import MalformedBytes
from kaspar.base.ids import TopicPartition
from kaspar.records import Record, build_batch
from kaspar.tools.command_line import CommandFailed
from kaspar.tools.include_list import topic_pattern
from kaspar.tools.replica_verification.comparison import Fetched, Lag, OffsetsDiffer, ReplicaComparison

WHERE = TopicPartition("foo", 0)


def _batches(*values: bytes, records: int = 1) -> bytes:
    """One batch of records for each value, from offset 0 on."""
    out = bytearray()
    for number, value in enumerate(values):
        batch = bytearray(build_batch([Record(1, None, value)] * records))
        batch[:8] = (number * records).to_bytes(8, "big")
        out += batch
    return bytes(out)


def _compare(*fetched: Fetched) -> tuple[list[str], int]:
    """The sentences, and the offset at which the next round begins."""
    comparison = ReplicaComparison({WHERE: 0})
    sentences = comparison.compare({WHERE: dict(enumerate(fetched, 1))})
    return sentences, comparison.offsets[WHERE]


def test_equal_replicas_are_verified_up_to_the_shortest() -> None:
    assert _compare(Fetched(3, _batches(b"a", b"b", b"c")), Fetched(3, _batches(b"a", b"b"))) == ([], 2)


def test_batches_beyond_a_high_watermark_wait() -> None:
    batches = _batches(b"a", b"b", b"c")
    assert _compare(Fetched(3, batches), Fetched(1, batches)) == ([], 1)


def test_partial_batch_at_the_end_waits() -> None:
    batches = _batches(b"a", b"b")
    assert _compare(Fetched(2, batches), Fetched(2, batches[:-1])) == ([], 1)


def test_replica_that_could_not_be_read_delays_its_partition() -> None:
    assert _compare(Fetched(1, _batches(b"a")), Fetched(1, _batches(b"b")), Fetched()) == ([], 0)


def test_single_replica_is_always_right() -> None:
    assert _compare(Fetched(1, _batches(b"a"))) == ([], 1)


def test_checksums_that_differ_are_reported_and_the_rest_is_compared() -> None:
    sentences, offset = _compare(Fetched(3, _batches(b"a", b"b", b"c")), Fetched(3, _batches(b"a", b"x", b"c")))
    assert offset == 3
    (sentence,) = sentences
    assert re.fullmatch(
        r"partition foo-0 has unmatched checksum at offset 1; replica 1's checksum \d+; replica 2's checksum \d+",
        sentence,
    )


def test_offsets_that_differ_end_the_comparison() -> None:
    with pytest.raises(OffsetsDiffer) as raised:
        _compare(Fetched(2, _batches(b"a", b"b")), Fetched(2, _batches(b"a", records=2)))
    assert str(raised.value) == "partition foo-0: replica 1's offset 0 doesn't match replica 2's offset 1"


def test_bytes_that_are_no_batches_name_their_replica() -> None:
    with pytest.raises(MalformedBytes, match="Error in processing replica 2 in partition foo-0"):
        _compare(Fetched(1, _batches(b"a")), Fetched(1, bytes(200)))


def test_largest_lag_is_that_behind_the_highest_watermark() -> None:
    other = TopicPartition("foo", 1)
    comparison = ReplicaComparison({WHERE: 5, other: 0})
    fetched = {WHERE: {1: Fetched(7), 2: Fetched(9)}, other: {1: Fetched(3)}}
    assert comparison.max_lag(fetched) == Lag(4, WHERE, 5)


@pytest.mark.parametrize(
    ("text", "matching", "other"),
    [(".*", "anything", None), ("foo,bar", "bar", "foobar"), ('"fo+ , bar"', "foo", "fo+"), ("foo", "foo", "food")],
)
def test_topics_are_included_by_a_list_of_patterns(text: str, matching: str, other: str | None) -> None:
    pattern = topic_pattern(text)
    assert pattern.fullmatch(matching)
    assert other is None or not pattern.fullmatch(other)


def test_pattern_that_is_wrong_is_a_sentence() -> None:
    with pytest.raises(CommandFailed, match=r"^\[ is an invalid regex\.$"):
        topic_pattern("[")
