"""Dead letters: records that could not be decoded, written unchanged to another topic, with headers that say why.

The headers are those of Kafka Connect's dead letter queue (KIP-298), so that tools for it can read them, and one more
for the record's timestamp. The timestamp of the dead letter itself is the time when it was written, because the
retention of the topic counts from it: otherwise dead letters of old records would be deleted before anyone sees them. A
dead letter is written to the partition with its record's number (modulo the topic's partitions), so the dead letters of
one partition keep their order.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

from kaspar.base.ids import TopicPartition
from kaspar.client.cluster import Client
from kaspar.client.producing import RawProducer
from kaspar.client.transactions import init_producer_id
from kaspar.records.builder import build_batch
from kaspar.records.record import Record
from kaspar.spark.kafka_settings import ConnectionSettings

PREFIX = "__connect.errors."
TIMESTAMP_HEADER = "__kaspar.errors.timestamp"  # milliseconds; Connect's letters keep the record's own
_STAGES = {"key": "KEY_CONVERTER", "value": "VALUE_CONVERTER"}
_BATCH_BYTES = 256 * 1024  # a batch ends with the record that reaches this size


@dataclass(frozen=True, slots=True)
class DeadLetter:
    source: TopicPartition
    record: Record  # as it was read, with its offset
    field: str  # the part of it that could not be decoded
    reason: str

    def to_record(self, now_ms: int) -> Record:
        reasons = {
            f"{PREFIX}topic": self.source.topic,
            f"{PREFIX}partition": str(self.source.partition),
            f"{PREFIX}offset": str(self.record.offset),
            f"{PREFIX}stage": _STAGES[self.field],
            f"{PREFIX}exception.message": self.reason,
            TIMESTAMP_HEADER: str(self.record.timestamp),
        }
        headers = (*self.record.headers, *((name, text.encode()) for name, text in reasons.items()))
        return self.record._replace(timestamp=now_ms, offset=-1, headers=headers)


class DeadLetters(Protocol):
    """A destination of dead letters. They are stored when `put` returns."""

    topic: str

    def put(self, letters: Sequence[DeadLetter]) -> None: ...


class DeadLetterTopic:
    """Writes dead letters to a topic. It connects with the first one: most tasks have none."""

    def __init__(self, topic: str, connection: ConnectionSettings) -> None:
        self.topic = topic
        self._connection = connection
        self._client: Client | None = None
        self._producer: RawProducer | None = None

    def put(self, letters: Sequence[DeadLetter]) -> None:
        """Write dead letters; returns when all of them are stored. Raises Refused if they cannot be."""
        if self._producer is None:
            client = self._client = self._connection.client()
            self._producer = RawProducer(client, producer=init_producer_id(client, None).producer)
        count = self._producer.partitions_of(self.topic).count
        now_ms = int(time.time() * 1000)
        by_partition: dict[int, list[Record]] = {}
        for letter in letters:
            by_partition.setdefault(letter.source.partition % count, []).append(letter.to_record(now_ms))
        for partition, records in by_partition.items():
            where = TopicPartition(self.topic, partition)
            self._producer.send([(where, batch) for batch in _batches(records)])
        self._producer.flush()

    def close(self) -> None:
        if self._producer is not None:
            self._producer.close()
        if self._client is not None:
            self._client.close()
        self._producer = self._client = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _batches(records: Sequence[Record]) -> Iterator[memoryview]:
    begun: list[Record] = []
    size = 0
    for record in records:
        begun.append(record)
        size += len(record.key or b"") + len(record.value or b"")
        if size >= _BATCH_BYTES or record is records[-1]:
            yield memoryview(build_batch(begun))
            begun, size = [], 0
