"""Kept folders with transactions open for ever: aborted ones stay hidden, an open one is ended by its producer."""

import json
import shutil
from pathlib import Path

import pytest

from kaspar.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from tests.integration.data_folders import FOLDERS
from tests.integration.transactional_folder import (
    FEW_PARTITIONS,
    GROUP,
    TOPIC,
    TRANSACTIONAL_ID,
    TRANSACTIONS,
    read_content,
)
from tests.peers.observed import ObservedBroker, wait_until
from tests.peers.raw_client import RawClient
from tests.peers.raw_transactions import GROUP as OF_GROUPS
from tests.peers.raw_transactions import RawProducer, find_coordinator

KEPT = sorted(path for path in FOLDERS.glob("transactions-v*") if path.is_dir())
LAST_VERSION = 9
FOREVER = {
    **FEW_PARTITIONS,
    "offsets.retention.minutes": "2147483647",
    "transactional.id.expiration.ms": "2147483647",
}
"""The folder grows old, and nothing in it may expire for that."""


@pytest.mark.parametrize("kept", KEPT, ids=lambda path: path.name)
@pytest.mark.parametrize("after", ["a clean stop", "a kill", "a kill that took the indexes"])
def test_kept_transactions_are_what_they_were(kept: Path, after: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(kept, data, copy_function=shutil.copyfile)
    indexes = list((data / f"{TOPIC}-0").glob("*.txnindex"))
    assert indexes
    if after != "a clean stop":
        (data / ".kafka_cleanshutdown").unlink()
        (data / "recovery-point-offset-checkpoint").unlink()
    if after == "a kill that took the indexes":
        for index in indexes:
            index.unlink()
    expected = json.loads(kept.with_suffix(".json").read_text())
    producer_id, producer_epoch = expected.pop("producer_id"), expected.pop("producer_epoch")
    with ObservedBroker(tmp_path, overrides=FOREVER) as broker, broker.client() as client:
        opened = read_content(broker.bootstrap)
        assert opened["committed"] == expected["committed"]
        # The open transaction is older than its timeout, and the coordinator may have ended it already.
        assert opened["last_stable_offset"] >= expected["last_stable_offset"]
        assert _committed_offset(client) == TRANSACTIONS - 1
        producer = RawProducer(client, TRANSACTIONAL_ID)
        producer.begin_life()
        assert producer.producer_id == producer_id
        assert producer.epoch > producer_epoch
        assert producer.write(TOPIC, b"goes on").error_code == 0
        assert producer.end(commit=True).error_code == 0
        wait_until(lambda: read_content(broker.bootstrap)["committed"][-1][1] == "goes on", "the commit is seen")
        assert read_content(broker.bootstrap)["committed"][:-1] == expected["committed"]
        assert not broker.warnings()


def _committed_offset(client: RawClient) -> int:
    find_coordinator(client, GROUP, OF_GROUPS)
    wanted = OffsetFetchRequestTopics(name=TOPIC, partition_indexes=(0,))
    request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=GROUP, topics=(wanted,)),))
    found = -1

    def is_loaded() -> bool:
        nonlocal found
        (group,) = client.call(request, OffsetFetchResponse, LAST_VERSION).groups
        if group.error_code == 0:
            found = group.topics[0].partitions[0].committed_offset
        return group.error_code == 0

    wait_until(is_loaded, "the group's offsets are loaded")
    return found
