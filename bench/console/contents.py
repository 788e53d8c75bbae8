"""The contents of the cluster: thousands of topics, groups with committed offsets, subjects, and one topic of a hundred
million records over a day."""

import json
import random
import struct
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import httpx

from bench.programs import LoadError
from bench.registry.bench import schema_of, subject_of
from kaspar.base.ids import TopicPartition
from kaspar.client import Client
from kaspar.client.admin.creation import NewTopic, create_topics
from kaspar.client.admin.group_offsets import alter_group_offsets
from kaspar.client.admin.session import Admin, raise_first
from kaspar.client.producing import RawProducer
from kaspar.records.batch import set_crc
from kaspar.records.builder import build_batch
from kaspar.records.codec import Codec
from kaspar.records.layout import BASE_TIMESTAMP_AT, MAX_TIMESTAMP_AT
from kaspar.records.record import Record

BIG_TOPIC: Final = "clicks"
BATCH_RECORDS: Final = 10_000
_DAY_MS: Final = 86_400_000
_CREATED_AT_ONCE: Final = 500
_COMMITTED_BY_A_GROUP: Final = 5
_REGISTERING: Final = 8
_TIMESTAMP: Final = struct.Struct(">q")


@dataclass(frozen=True, slots=True)
class Contents:
    topics: int
    groups: int
    subjects: int
    records: int
    """The number of records of the big topic; a multiple of those in one of its batches."""

    def topic(self, number: int) -> str:
        return f"topic-{number % self.topics:05}"

    def group(self, number: int) -> str:
        return f"group-{number % self.groups:04}"

    @property
    def batches(self) -> int:
        return self.records // BATCH_RECORDS

    def __str__(self) -> str:
        return (
            f"{self.topics:,} topics of one partition and one record, {self.groups:,} groups that have each committed "
            f"{_COMMITTED_BY_A_GROUP} partitions, {self.subjects:,} subjects, and a topic of "
            f"{self.batches * BATCH_RECORDS:,} records in batches of {BATCH_RECORDS:,}"
        )


def fill(contents: Contents, bootstrap_servers: str, registry_url: str) -> None:
    with Admin(bootstrap_servers) as admin:
        names = [contents.topic(number) for number in range(contents.topics)]
        for first in range(0, len(names), _CREATED_AT_ONCE):
            some = names[first : first + _CREATED_AT_ONCE]
            raise_first(create_topics(admin, [NewTopic(name, 1, 1) for name in some]).values())
            _write_first_records(admin.client, some)
        raise_first(create_topics(admin, [NewTopic(BIG_TOPIC, 1, 1)]).values())
        _write_big_topic(admin.client, contents.batches)
        for number in range(contents.groups):
            read = {
                TopicPartition(contents.topic(number * 7 + each), 0): each % 2 for each in range(_COMMITTED_BY_A_GROUP)
            }
            raise_first(alter_group_offsets(admin, contents.group(number), read).values())
    _register(registry_url, contents.subjects)


def _write_first_records(client: Client, topics: Iterable[str]) -> None:
    """Write one record to each topic, so that the brokers' metrics pages have lines for all topics."""
    batch = build_batch([Record(int(time.time() * 1000), b"first", b"{}")])
    with RawProducer(client, producer=None) as producer:
        for topic in topics:
            producer.partitions_of(topic)
            producer.send([(TopicPartition(topic, 0), memoryview(bytearray(batch)))])
        producer.flush()


def _write_big_topic(client: Client, batches: int) -> None:
    with RawProducer(client, producer=None) as producer:
        producer.partitions_of(BIG_TOPIC)
        for batch in _batches(batches, int(time.time() * 1000) - _DAY_MS):
            producer.send([(TopicPartition(BIG_TOPIC, 0), memoryview(batch))])
        producer.flush()


def _batches(count: int, since_ms: int) -> Iterator[bytearray]:
    """Batches of the same records, with times that are spread over a day. The records are compressed only once."""
    rng = random.Random(1)
    length_ms = _DAY_MS // max(1, count)
    records = [
        Record(
            number * length_ms // BATCH_RECORDS,
            f"user-{rng.randrange(1_000_000):06}".encode(),
            json.dumps({"page": rng.randrange(500), "ms": rng.randrange(3000), "ok": rng.random() < 0.9}).encode(),
        )
        for number in range(BATCH_RECORDS)
    ]
    pattern = build_batch(records, codec=Codec.ZSTD)
    for number in range(count):
        batch = bytearray(pattern)
        start_ms = since_ms + number * length_ms
        _TIMESTAMP.pack_into(batch, BASE_TIMESTAMP_AT, start_ms)
        _TIMESTAMP.pack_into(batch, MAX_TIMESTAMP_AT, start_ms + records[-1].timestamp)
        set_crc(batch, 0)
        yield batch


def _register(registry_url: str, subjects: int) -> None:
    with httpx.Client(base_url=registry_url, trust_env=False, timeout=60) as client:

        def register(number: int) -> None:
            response = client.post(f"/subjects/{subject_of(number)}/versions", json={"schema": schema_of(number)})
            if response.status_code != 200:
                raise LoadError(f"a schema could not be registered: {response.text[:200]}")

        with ThreadPoolExecutor(_REGISTERING) as threads:
            list(threads.map(register, range(1, subjects + 1)))
