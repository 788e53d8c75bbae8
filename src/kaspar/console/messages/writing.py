"""Writes records to a partition, once each: if a response is lost, the leader recognizes the repeated batch.

Records are written unchanged, so that a replay has the bytes of the original.
"""

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import NO_PRODUCER_ID, TopicPartition
from kaspar.client.cluster import Client
from kaspar.client.transactions import init_producer_id
from kaspar.console.problems import NotThere
from kaspar.records.builder import build_batch
from kaspar.records.codec import Codec
from kaspar.records.column_writing import murmur2
from kaspar.records.record import Record

_COMPRESSED_FROM: Final = 256 * 1024
"""Bytes. Records that a producer compressed to stay below `max.message.bytes` have to be compressed again."""
_NOT_PERMITTED: Final = frozenset(
    {ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNSUPPORTED_VERSION}
)


@dataclass(frozen=True, slots=True)
class Written:
    partition: int
    offset: int
    timestamp: int


class RecordWriter:
    """Writes the records of one request of the page. Not thread-safe."""

    def __init__(self, client: Client, *, now_ms: Callable[[], int] = lambda: int(time.time() * 1000)) -> None:
        self._client = client
        self.now_ms = now_ms
        self._producer_id, self._epoch = _identified(client)
        self._sequences: Counter[TopicPartition] = Counter()
        self._counts: dict[str, int] = {}

    def partition_of(self, topic: str, key: bytes | None, wanted: int | None = None) -> int:
        """The wanted partition or, without one, the choice of Java's producer: by the key, and any if there is none.
        Raises Refused and NotThere."""
        count = self._partition_count(topic)
        if wanted is not None:
            if not 0 <= wanted < count:
                raise NotThere(f"Topic {topic} has no partition {wanted}: it has {count}.")
            return wanted
        return random.randrange(count) if key is None else murmur2(key) % count

    def write(self, topic: str, partition: int, records: Sequence[Record]) -> Written:
        """Write the records as one batch. Returns the position of the first. Raises Refused."""
        where = TopicPartition(topic, partition)
        size = sum(size_of(each) for each in records)
        is_identified = self._producer_id != NO_PRODUCER_ID
        batch = build_batch(
            [each._replace(offset=-1) for each in records],
            codec=Codec.ZSTD if size >= _COMPRESSED_FROM else Codec.NONE,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=self._sequences[where] if is_identified else -1,
        )
        stored = self._client.produce(topic, partition, bytes(batch))
        assert stored is not None, "with acks=-1 there is a response"
        self._sequences[where] += len(records)
        timestamp = stored.log_append_time_ms if stored.log_append_time_ms >= 0 else records[0].timestamp
        return Written(partition, stored.base_offset, timestamp)

    def _partition_count(self, topic: str) -> int:
        if topic not in self._counts:
            (found,) = self._client.refresh_metadata([topic]).topics
            if found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise NotThere(f"There is no topic {topic}.")
            if found.error_code != ErrorCode.NONE:
                code = ErrorCode(found.error_code)
                raise Refused(code, f"Topic {topic} cannot be written: {code.name}.")
            self._counts[topic] = len(found.partitions)
        return self._counts[topic]


def size_of(record: Record) -> int:
    """The approximate number of bytes of a record in an uncompressed batch."""
    headers = sum(len(name) + len(value or b"") for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers


def _identified(client: Client) -> tuple[int, int]:
    """A producer id by which leaders recognize a batch that is sent again, if the caller may have one."""
    try:
        producer = init_producer_id(client, None).producer
    except Refused as refused:
        if refused.code not in _NOT_PERMITTED:
            raise
        return NO_PRODUCER_ID, -1
    return producer.producer_id, producer.producer_epoch
