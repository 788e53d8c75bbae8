"""A data folder with a compacted topic, kept in git as `data_folders.py` says: `tests/data/compacted-v1/`.

python -m tests.integration.compacted_folder tests/data/compacted-v1
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from kaspar.records import Codec, Record, build_batch, iter_headers, iter_records
from kaspar.testing import Broker
from tests.integration.data_folders import NODE_ID, START_MS
from tests.peers.observed import wait_until
from tests.peers.raw_client import RawClient
from tests.peers.raw_transactions import RawProducer

TOPIC = "salaries"
PEOPLE = 5
ROUNDS = 12
SETTINGS = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "1500",
    "index.interval.bytes": "200",
    "min.cleanable.dirty.ratio": "0",
    "delete.retention.ms": str(1 << 40),  # what is marked to go stays, however old the folder gets
}
ALONE = {"transaction.state.log.num.partitions": "1", "log.cleaner.backoff.ms": "10"}


def write_folder(folder: Path) -> None:
    """Merged segments, batches with gaps in every codec, emptied ones, tombstones and markers with a horizon."""
    overrides = {"node.id": str(NODE_ID), **ALONE}
    with Broker(data_dir=folder, overrides=overrides) as broker, RawClient(broker.port) as client:
        assert client.create_topic(TOPIC, configs=SETTINGS) == 0
        producer = RawProducer(client, "payroll")
        producer.begin_life()
        producer_id = client.new_producer_id()
        sequence = 0
        for number in range(ROUNDS):
            records = [_record(number * PEOPLE + person, person) for person in range(PEOPLE)]
            codec = list(Codec)[number % len(Codec)]
            written = producer.write_batch(TOPIC, producer.batch_of(TOPIC, records[:2], codec=codec))
            assert written.error_code == 0
            assert producer.end(commit=number % 3 != 0).error_code == 0
            batch = build_batch(
                records[2:], codec=codec, producer_id=producer_id, producer_epoch=0, base_sequence=sequence
            )
            assert client.produce_batch(TOPIC, bytes(batch)).error_code == 0
            sequence += len(records) - 2
        logs = folder / f"{TOPIC}-0"
        checkpoint = folder / "cleaner-offset-checkpoint"

        def is_cleaned() -> bool:
            active = int(max(logs.glob("*.log")).stem)
            return checkpoint.exists() and f"{TOPIC} 0 {active}" in checkpoint.read_text().splitlines()

        wait_until(is_cleaned, "all but the active segment is cleaned")
        content = content_of(client)
        content["producer_id"], content["next_sequence"] = producer_id, sequence
        content["first_dirty_offset"] = int(max(logs.glob("*.log")).stem)
    (folder / ".lock").unlink()
    for left in logs.glob("*.deleted"):
        left.unlink()
    folder.with_suffix(".json").write_text(json.dumps(content, indent=1) + "\n")


def _record(number: int, person: int) -> Record:
    value = None if number % 11 == 10 else f"{1000 + number} a month".encode()
    headers = (("by", b"payroll"),) if number % 4 == 0 else ()
    return Record(START_MS + number * 1000, f"person {person}".encode(), value, headers)


def content_of(client: RawClient) -> dict[str, Any]:
    """Every batch of the compacted topic, with the records that are left in it, and where the log ends."""
    batches: list[list[Any]] = []
    offset = 0
    while data := client.fetch_bytes(TOPIC, offset).records:
        for position, header in iter_headers(data, 0, len(data)):
            records = [] if header.is_control else list(iter_records(data, position, position + header.size))
            batches.append([header.base_offset, header.last_offset, header.is_control, [*map(_plain, records)]])
            offset = header.next_offset
    return {"batches": batches, "end_offset": client.offset_at(TOPIC)[1]}


def _plain(record: Record) -> list[Any]:
    assert record.key is not None
    value = record.value.decode() if record.value is not None else None
    headers = [[name, (content or b"").decode()] for name, content in record.headers]
    return [record.offset, record.timestamp, record.key.decode(), value, headers]


if __name__ == "__main__":
    target = Path(sys.argv[1])
    shutil.rmtree(target, ignore_errors=True)
    write_folder(target)
