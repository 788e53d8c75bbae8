"""Data folders of released formats, kept in git: each must open for ever.

`tests/data/folder-v1/` is a broker's log directory as version 1 of the format leaves it after a clean stop, and
`tests/data/folder-v1.json` lists what is in it. When the format changes, its number goes up and a new pair joins them:

    python -m tests.integration.data_folders tests/data/folder-v2
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from kaspar.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from kaspar.records import Codec, Record, build_batch
from kaspar.testing import Broker
from tests.peers.raw_client import RawClient

FOLDERS = Path(__file__).parent.parent / "data"
START_MS = 1_700_000_000_000
NODE_ID = 1
SETTINGS = {"retention.ms": "-1", "internal.segment.bytes": "2000", "index.interval.bytes": "200"}
PARTITIONS = 2
RECORDS = 40
FIRST_KEPT = 3  # records before it are deleted


def write_folder(folder: Path) -> None:
    """Every kind of record and file there is: codecs, nulls, headers, an idempotent producer, several segments."""
    with Broker(data_dir=folder, overrides={"node.id": str(NODE_ID)}) as broker, RawClient(broker.port) as client:
        for topic in ("orders", "empty"):
            assert client.create_topic(topic, partitions=PARTITIONS, configs=SETTINGS) == 0
        producer_id = client.new_producer_id()
        for number in range(0, RECORDS, 2):
            records = [_record(number), _record(number + 1)]
            codec = list(Codec)[number // 2 % len(Codec)]
            for partition in range(PARTITIONS):
                batch = build_batch(
                    records, codec=codec, producer_id=producer_id, producer_epoch=0, base_sequence=number
                )
                assert client.produce_batch("orders", bytes(batch), partition=partition).error_code == 0
        deleted = DeleteRecordsPartition(partition_index=1, offset=FIRST_KEPT)
        request = DeleteRecordsRequest(
            topics=(DeleteRecordsTopic(name="orders", partitions=(deleted,)),), timeout_ms=1000
        )
        assert client.call(request, DeleteRecordsResponse).topics[0].partitions[0].error_code == 0
        content = read_content(client)
        content["producer_id"] = producer_id
    (folder / ".lock").unlink()
    folder.with_suffix(".json").write_text(json.dumps(content, indent=1) + "\n")


def _record(number: int) -> Record:
    key = None if number % 5 == 0 else f"key {number % 7}".encode()
    value = None if number % 11 == 0 else f"value {number} ".encode() * 5
    headers = (("trace", b"%d" % number), ("nothing", None)) if number % 3 == 0 else ()
    return Record(START_MS + number * 1000, key, value, headers)


def read_content(client: RawClient) -> dict[str, Any]:
    """What a client finds: the topics, their ids, and every record with all its parts."""
    described = client.metadata()
    topics = {
        topic.name: {
            "topic_id": str(topic.topic_id),
            "partitions": [_read(client, topic.name or "", index) for index in range(len(topic.partitions))],
        }
        for topic in sorted(described.topics, key=lambda topic: topic.name or "")
    }
    return {"cluster_id": described.cluster_id, "topics": topics}


def _read(client: RawClient, topic: str, partition: int) -> list[list[Any]]:
    start = client.offset_at(topic, -2, partition=partition)[1]
    return [
        [
            record.offset,
            record.timestamp,
            _text(record.key),
            _text(record.value),
            [[name, _text(value)] for name, value in record.headers],
        ]
        for record in client.read_all(topic, partition=partition, offset=start)
    ]


def _text(data: bytes | None) -> str | None:
    return data.decode() if data is not None else None


if __name__ == "__main__":
    target = Path(sys.argv[1])
    shutil.rmtree(target, ignore_errors=True)
    write_folder(target)
