"""A data folder with transactions, kept in git as `data_folders.py` says: `tests/data/transactions-v1/`.

python -m tests.integration.transactional_folder tests/data/transactions-v1
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from kaspar.client import Client
from kaspar.protocol.isolation_level import READ_COMMITTED
from kaspar.storage import AbortedTransaction
from kaspar.testing import Broker
from tests.integration.data_folders import NODE_ID
from tests.peers.raw_client import RawClient
from tests.peers.raw_transactions import GROUP as OF_GROUPS
from tests.peers.raw_transactions import RawProducer, find_coordinator
from tests.property.transactions_model import CommittedReader

TOPIC = "transfers"
TRANSACTIONAL_ID = "transfers of the night"
GROUP = "readers"
SETTINGS = {"retention.ms": "-1", "internal.segment.bytes": "1000", "index.interval.bytes": "200"}
FEW_PARTITIONS = {"transaction.state.log.num.partitions": "1", "offsets.topic.num.partitions": "1"}
TRANSACTIONS = 12


def write_folder(folder: Path) -> None:
    """Committed and aborted transactions with offsets of a group in them, over several segments, and one left open."""
    overrides = {"node.id": str(NODE_ID), **FEW_PARTITIONS}
    with Broker(data_dir=folder, overrides=overrides) as broker, RawClient(broker.port) as client:
        assert client.create_topic(TOPIC, configs=SETTINGS) == 0
        producer = RawProducer(client, TRANSACTIONAL_ID)
        producer.begin_life()
        find_coordinator(client, GROUP, OF_GROUPS)
        for number in range(TRANSACTIONS):
            assert producer.write(TOPIC, b"debit %d" % number, b"credit %d" % number).error_code == 0
            assert producer.commit_offset(GROUP, TOPIC, number) == 0
            assert producer.end(commit=number % 3 != 0).error_code == 0
        assert producer.write(TOPIC, b"left open").error_code == 0
        content = read_content(broker.bootstrap_servers)
        content["producer_id"], content["producer_epoch"] = producer.producer_id, producer.epoch
    (folder / ".lock").unlink()
    folder.with_suffix(".json").write_text(json.dumps(content, indent=1) + "\n")


def read_content(bootstrap: str) -> dict[str, Any]:
    """What a read_committed reader and one that is not find."""
    reader = CommittedReader()
    with Client(bootstrap) as client:
        found = client.fetch(TOPIC, 0, 0, isolation_level=READ_COMMITTED, max_wait_ms=0)
        offset = 0
        while found.records:
            aborted = [
                AbortedTransaction(each.producer_id, each.first_offset, -1, -1)
                for each in found.aborted_transactions or ()
            ]
            offset = reader.take(offset, found.records, aborted)
            found = client.fetch(TOPIC, 0, offset, isolation_level=READ_COMMITTED, max_wait_ms=0)
    return {
        "committed": [[offset, (value or b"").decode()] for offset, value in reader.seen],
        "last_stable_offset": found.last_stable_offset,
        "high_watermark": found.high_watermark,
    }


if __name__ == "__main__":
    target = Path(sys.argv[1])
    shutil.rmtree(target, ignore_errors=True)
    write_folder(target)
