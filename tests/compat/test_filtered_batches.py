"""Batches that lose records to compaction are written as Kafka's own MemoryRecords.filterTo writes them, byte for byte.

Two compressors seldom agree on every byte, so compressed batches are compared by their headers and records.
"""

import random
import subprocess
from pathlib import Path

from kaspar.records import BatchHeader, Codec, Record, TimestampType, build_batch, iter_batch, iter_headers, read_header
from kaspar.records.compaction import BatchFate, BatchFilter, KeyMap
from tests.peers.downloads import require_tool
from tests.peers.kafka import LIGHT_JVM, TOOL_TIMEOUT_SECONDS, classpath, kafka_jars
from tests.peers.missing import unless_missing

PROGRAM = Path(__file__).parent / "drivers" / "java" / "FilterRecords.java"
NOW_MS = 1_700_000_000_000
DELETE_RETENTION_MS = 86_400_000
SAME_FIELDS = (
    *("base_offset", "last_offset", "leader_epoch", "attributes", "base_timestamp", "max_timestamp", "producer_id"),
    *("producer_epoch", "base_sequence", "count"),
)


def some_log(rng: random.Random) -> bytes:
    """Keys that come again, tombstones, every codec, both kinds of timestamps, producers, transactions, gaps."""
    data = b""
    offset = 0
    for number in range(200):
        records = [
            Record(
                10**12 + rng.randrange(10 ** rng.randint(1, 10)),
                rng.choice([None, *(b"key %d" % key for key in range(400))]),
                None if rng.random() < 0.1 else b"v" * rng.randrange(300),
                (("header", b"x"), ("null", None)) * rng.randrange(3),
            )
            for _ in range(rng.randint(1, 30))
        ]
        has_producer = rng.random() < 0.5
        data += build_batch(
            records,
            base_offset=offset,
            codec=rng.choice([*Codec, *[Codec.NONE] * 5]),
            timestamp_type=rng.choice(list(TimestampType)),
            producer_id=5 if has_producer else -1,
            producer_epoch=0 if has_producer else -1,
            base_sequence=number if has_producer else -1,
            transactional=has_producer and rng.random() < 0.5,
            leader_epoch=2,
        )
        offset += len(records) + rng.randrange(3)
    return data


def filtered_here(data: bytes, now_ms: int) -> bytes:
    headers = list(iter_headers(data, 0, len(data)))
    keys = KeyMap(1 << 20)
    for position, header in headers:
        assert keys.map_batch(data, position, header, 0)
    of_producers = [header.last_offset for _, header in headers if header.producer_id >= 0]
    batches = BatchFilter(keys, of_producers, -1, now_ms, now_ms + DELETE_RETENTION_MS)
    position = 0
    while (position := batches.filter_plain(data, position, len(data))) < len(data):
        header = read_header(data, position)
        batches.filter_batch(data, position, header, BatchFate())
        position += header.size
    return bytes(batches.take())


def filtered_by_kafka(folder: Path, data: bytes, now_ms: int) -> bytes:
    given, kept = folder / "given.log", folder / "kept.log"
    given.write_bytes(data)
    arguments = [str(given), str(kept), str(now_ms), str(DELETE_RETENTION_MS)]
    done = subprocess.run(
        [require_tool("java"), "-Xmx256m", *LIGHT_JVM, "-cp", classpath(), str(PROGRAM), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=TOOL_TIMEOUT_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return kept.read_bytes()


def by_place(data: bytes) -> list[tuple[int, BatchHeader]]:
    return list(iter_headers(data, 0, len(data)))


def test_filtered_batches_are_those_that_kafka_writes(tmp_path: Path) -> None:
    unless_missing(kafka_jars)
    data = some_log(random.Random(20261116))
    # In the second round the tombstones go that were marked in the first.
    for now_ms in (NOW_MS, NOW_MS + DELETE_RETENTION_MS):
        ours, theirs = filtered_here(data, now_ms), filtered_by_kafka(tmp_path, data, now_ms)
        assert len(by_place(ours)) == len(by_place(theirs)) > 100
        for (here, our), (there, their) in zip(by_place(ours), by_place(theirs), strict=True):
            if our.codec is Codec.NONE:
                assert ours[here : here + our.size] == theirs[there : there + their.size], (our, their)
            else:
                for field in SAME_FIELDS:
                    assert getattr(our, field) == getattr(their, field), (field, our, their)
                assert list(iter_batch(ours, here, our)) == list(iter_batch(theirs, there, their))
        data = ours
