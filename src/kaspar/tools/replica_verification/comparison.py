"""Compares the batches of the replicas of partitions.

In every round each replica is read from the same offset. Its batches up to the high watermark are compared with those
of the others by last offset and checksum. The next round starts after the last batch that all replicas had. A replica
that could not be read has no batches in that round, so its partitions make no progress.
"""

from collections.abc import Iterable, Mapping
from itertools import takewhile
from typing import NamedTuple

from kaspar.base.errors import KasparError, MalformedBytes
from kaspar.base.ids import TopicPartition
from kaspar.records import BatchHeader, iter_headers
from kaspar.records.codec import Octets


class Fetched(NamedTuple):
    """The batches of a replica, starting at the offset of this round."""

    high_watermark: int = -1
    records: Octets = b""


class OffsetsDiffer(KasparError):
    """The batches of two replicas end at different offsets, so they cannot be compared any further."""


class Lag(NamedTuple):
    """How far the verified offset of a partition is behind the high watermark."""

    lag: int
    partition: TopicPartition
    offset: int


class ReplicaComparison:
    def __init__(self, offsets: Mapping[TopicPartition, int]) -> None:
        """`offsets` are the offsets of the first round."""
        self.offsets = dict(offsets)

    def compare(self, fetched: Mapping[TopicPartition, Mapping[int, Fetched]]) -> list[str]:
        """Compare the batches of one round, by partition and broker id. Returns a sentence for each differing checksum.

        Raises OffsetsDiffer, and MalformedBytes for malformed batches."""
        sentences: list[str] = []
        for where, replicas in fetched.items():
            sentences += self._compare_partition(where, replicas)
        return sentences

    def _compare_partition(self, where: TopicPartition, replicas: Mapping[int, Fetched]) -> Iterable[str]:
        committed = {replica: _committed(where, replica, each) for replica, each in replicas.items()}
        first, *others = committed
        for batches in zip(*(committed[replica] for replica in (first, *others)), strict=False):
            expected = batches[0]
            for replica, batch in zip(others, batches[1:], strict=True):
                if batch.last_offset != expected.last_offset:
                    raise OffsetsDiffer(
                        f"partition {where}: replica {first}'s offset {expected.last_offset} "
                        f"doesn't match replica {replica}'s offset {batch.last_offset}"
                    )
                if batch.crc != expected.crc:
                    yield (
                        f"partition {where} has unmatched checksum at offset {batch.last_offset}; "
                        f"replica {first}'s checksum {expected.crc}; replica {replica}'s checksum {batch.crc}"
                    )
            self.offsets[where] = expected.next_offset

    def max_lag(self, fetched: Mapping[TopicPartition, Mapping[int, Fetched]]) -> Lag:
        """The largest lag of any partition after a round."""
        return max(
            (
                Lag(
                    max(each.high_watermark for each in replicas.values()) - self.offsets[where],
                    where,
                    self.offsets[where],
                )
                for where, replicas in fetched.items()
            ),
            key=lambda each: each.lag,
        )


def _committed(where: TopicPartition, replica: int, fetched: Fetched) -> list[BatchHeader]:
    try:
        headers = [header for _, header in iter_headers(fetched.records, 0, len(fetched.records))]
    except MalformedBytes as problem:
        raise MalformedBytes(f"Error in processing replica {replica} in partition {where}: {problem}") from None
    return list(takewhile(lambda header: header.last_offset < fetched.high_watermark, headers))
