"""Kept folders with compacted topics open for ever, and are cleaned on from where they were."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from kaspar.records import Record, build_batch
from tests.integration.compacted_folder import ALONE, TOPIC, content_of
from tests.integration.data_folders import FOLDERS, START_MS
from tests.integration.test_cleaning import TOPIC_RESOURCE, alter
from tests.peers.observed import ObservedBroker, wait_until

KEPT = sorted(path for path in FOLDERS.glob("compacted-v*") if path.is_dir())


@pytest.mark.parametrize("kept", KEPT, ids=lambda path: path.name)
@pytest.mark.parametrize("clean", [True, False], ids=["a clean stop", "a kill that took the checkpoints"])
def test_kept_folder_opens_and_is_cleaned_on(kept: Path, tmp_path: Path, clean: bool) -> None:
    data = tmp_path / "data"
    shutil.copytree(kept, data)
    if not clean:
        (data / ".kafka_cleanshutdown").unlink()
        (data / "recovery-point-offset-checkpoint").unlink()
    expected = json.loads(kept.with_suffix(".json").read_text())
    producer_id, sequence = expected.pop("producer_id"), expected.pop("next_sequence")
    first_dirty = expected.pop("first_dirty_offset")
    checkpoint = data / "cleaner-offset-checkpoint"
    assert f"{TOPIC} 0 {first_dirty}" in checkpoint.read_text().splitlines()
    with ObservedBroker(tmp_path, overrides=ALONE) as broker, broker.client() as client:
        assert content_of(client) == expected
        assert not [line for line in broker.warnings() if "kaspar.storage" in line]
        for number in range(20):  # as its producer would go on, with new values of one key
            batch = build_batch(
                [Record(START_MS, b"person 0", b"%d" % number * 100)],
                producer_id=producer_id,
                producer_epoch=0,
                base_sequence=sequence + number,
            )
            assert client.produce_batch(TOPIC, bytes(batch)).error_code == 0
        wait_until(lambda: f"{TOPIC} 0 {first_dirty}" not in checkpoint.read_text().splitlines(), "it is cleaned on")
        now = _last_of_each_key(content_of(client))
        assert now.pop("person 0") == expected["end_offset"] + 19
        assert now == {key: offset for key, offset in _last_of_each_key(expected).items() if key != "person 0"}


@pytest.mark.parametrize("forgotten", [False, True], ids=["known", "unknown to the metadata store"])
def test_gaps_of_a_topic_that_was_compacted_are_no_reason_to_drop_records(tmp_path: Path, forgotten: bool) -> None:
    """Its policy was changed to delete, the broker was killed, and the recovery points are damaged."""
    data = tmp_path / "data"
    shutil.copytree(KEPT[-1], data)
    expected = json.loads(KEPT[-1].with_suffix(".json").read_text())
    expected = {name: expected[name] for name in ("batches", "end_offset")}
    store = (data / "metadata.db").read_bytes()
    settings = {**ALONE, "log.cleaner.enable": "false", "log.retention.ms": "-1"}
    with ObservedBroker(tmp_path, overrides=settings) as broker:
        with broker.client() as client:
            alter(client, TOPIC_RESOURCE, TOPIC, {"cleanup.policy": "delete"})
        for _ in range(2):
            broker.kill()
            (data / "recovery-point-offset-checkpoint").write_text("0\nall of them\n")
            if forgotten:
                for file in data.glob("metadata.db*"):
                    file.unlink()
            broker.start()
        if forgotten:
            broker.kill()
            for file in data.glob("metadata.db*"):
                file.unlink()
            (data / "metadata.db").write_bytes(store)
            broker.start()
        with broker.client() as client:
            assert content_of(client) == expected
        assert not list(data.glob(f"{TOPIC}-0/*.stray"))


def _last_of_each_key(content: dict[str, Any]) -> dict[str, int]:
    return {key: offset for *_, records in content["batches"] for offset, _, key, _, _ in records}
