"""A partition that is filled alike at any broker, compacted when a test says so, and looked at batch by batch.

The topic is not compacted while it is filled, so that what a cleaner finds does not hang on when it came by. Rolls go
by bytes, and the bytes are ours, so that the segments of two brokers are the same.
"""

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from kaspar.records import Codec, Record, build_batch, iter_headers, iter_records
from tests.compat.drivers.api import Received
from tests.compat.drivers.confluent import ConfluentDriver
from tests.compat.partition_folder import segments
from tests.compat.scenario import eventually, wait_for_leaders
from tests.peers.brokers import Brokers, Leader
from tests.peers.raw_client import RawClient
from tests.peers.raw_transactions import RawProducer

TOPIC = "salaries"
BROKER_SETTINGS = {
    "log.cleaner.backoff.ms": "50",
    "transaction.state.log.num.partitions": "1",
    "offsets.topic.num.partitions": "1",
}
TOPIC_SETTINGS = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "internal.segment.bytes": "3000",
    "index.interval.bytes": "300",
    "min.cleanable.dirty.ratio": "0",
    "delete.retention.ms": "0",
}
PEOPLE = 29
CHECKPOINT = "cleaner-offset-checkpoint"

_CODECS = list(Codec)
_START_MS = int(time.time() * 1000) - 3_600_000  # of all brokers alike


class Shape(NamedTuple):
    """A batch, but for what two brokers may give differently: the time of a marker, and compressed bytes."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    codec: Codec
    is_transactional: bool
    is_control: bool
    producer: tuple[int, int, int]
    has_delete_horizon: bool
    records: tuple[tuple[Any, ...], ...]


class CompactedPartition:
    def __init__(self, broker: Brokers, topic: str = TOPIC, *, tombstones: bool = True) -> None:
        self.broker = broker
        self.topic = topic
        self.driver = ConfluentDriver(broker.bootstrap)
        self._tombstones = tombstones
        self._written = 0

    @property
    def folder(self) -> Path:
        return self._leader.data_dir / f"{self.topic}-0"

    @property
    def _leader(self) -> Leader:
        return self.broker.leader(self.topic, 0)

    def create(self) -> None:
        self.driver.create_topic(self.topic, config=TOPIC_SETTINGS)
        wait_for_leaders(self.broker, self.topic, [0])

    def fill(self, rounds: int = 40) -> None:
        """Every codec, one to four records a batch, tombstones, headers, an idempotent producer, transactions that
        overlap, committed and aborted, and some that reach over several segments."""
        with RawClient(self._leader.port) as client:
            producers = [RawProducer(client, f"{self.topic}-{number}-{self._written}") for number in range(3)]
            for producer in producers:
                producer.begin_life()
            idempotent = client.new_producer_id()
            sequence = 0
            for number in range(rounds):
                records = self._records(1 + number % 4)
                codec = _CODECS[number % len(_CODECS)]
                match number % 4:
                    case 0 | 2:
                        batch = build_batch(records, codec=codec)
                    case 1:
                        batch = build_batch(
                            records, codec=codec, producer_id=idempotent, producer_epoch=0, base_sequence=sequence
                        )
                        sequence += len(records)
                    case _:
                        producer = producers[number % 3]
                        self._write(producer, records, codec)
                        if number % 5 == 0:
                            self._end(producer, commit=number % 2 == 1)
                        continue
                assert client.produce_batch(self.topic, bytes(batch)).error_code == 0
            for number, producer in enumerate(producers):
                self._write(producer, self._records(2), Codec.NONE)
                self._end(producer, commit=number != 1)
        self.fill_plainly(3)  # the segment that is written to is not cleaned

    def fill_plainly(self, batches: int) -> None:
        """Without producer ids, which another broker may have given to others."""
        with RawClient(self._leader.port) as client:
            for _ in range(batches):
                assert client.produce_batch(self.topic, bytes(build_batch(self._records(4)))).error_code == 0

    def _records(self, count: int) -> list[Record]:
        records = []
        for _ in range(count):
            self._written += 1
            number = self._written
            key = b"person %d" % random.Random(number).randrange(PEOPLE)
            value = None if self._tombstones and number % 8 == 0 else (b"%d a month " % number) * (number % 6)
            headers = (("by", b"payroll"), ("none", None)) if number % 5 == 0 else ()
            records.append(Record(_START_MS + number * 10 - number % 3, key, value, headers))
        return records

    def compact(self) -> None:
        """Let the cleaner come by, until all but the active segment is clean; then keep it away again."""
        active = int(segments(self.folder)[-1].stem)
        self.driver.alter_config(self.topic, {"cleanup.policy": "compact"})
        eventually(lambda: self.first_dirty_offset() == active, f"{self.topic} is cleaned up to {active}", seconds=30)
        self.driver.alter_config(self.topic, {"cleanup.policy": "delete"})

    def first_dirty_offset(self) -> int:
        """From the checkpoint; -1 where it has no entry."""
        checkpoint = self._leader.data_dir / CHECKPOINT
        lines = checkpoint.read_text().splitlines() if checkpoint.exists() else []
        assert not lines or (lines[0] == "0" and int(lines[1]) == len(lines) - 2)
        found = [line.split(" ") for line in lines[2:]]
        return next((int(offset) for topic, partition, offset in found if (topic, partition) == (self.topic, "0")), -1)

    def left(self) -> list[Received]:
        """Every record of the log that is no marker, as a client should see it. None of them was aborted: the records
        that were are gone, and the active segment holds none."""
        return [
            Received(*record)
            for batches in shapes(self.folder).values()
            for batch in batches
            if not batch.is_control
            for record in batch.records
        ]

    def _write(self, producer: RawProducer, records: list[Record], codec: Codec) -> None:
        batch = producer.batch_of(self.topic, records, codec=codec)
        assert producer.write_batch(self.topic, batch).error_code == 0

    def _end(self, producer: RawProducer, *, commit: bool) -> None:
        """Returns when the marker is in the log: the coordinator responds before that."""
        _, end_offset = producer.client.offset_at(self.topic)
        assert producer.end(commit=commit).error_code == 0
        eventually(lambda: producer.client.offset_at(self.topic)[1] > end_offset, "the marker is written")


def shapes(folder: Path) -> dict[int, list[Shape]]:
    """The batches of each segment, by the offset in its name."""
    return {int(path.stem): list(_shapes(path.read_bytes())) for path in segments(folder)}


def _shapes(log: bytes) -> Iterator[Shape]:
    for position, header in iter_headers(log, 0, len(log)):
        records = list(iter_records(log, position, position + header.size))
        yield Shape(
            header.base_offset,
            header.last_offset,
            header.leader_epoch,
            header.codec,
            header.is_transactional,
            header.is_control,
            (header.producer_id, header.producer_epoch, header.base_sequence),
            header.delete_horizon_ms is not None,
            tuple(
                (record.offset, record.key, record.value)
                if header.is_control
                else (record.offset, record.timestamp, record.key, record.value, record.headers)
                for record in records
            ),
        )
