"""Folders of earlier formats open and give their records; folders of later ones are refused with a sentence."""

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.integration.commands import refusal
from tests.integration.data_folders import FOLDERS, NODE_ID, PARTITIONS, RECORDS, read_content
from tests.peers.observed import ObservedBroker
from tests.peers.wire import free_port

KEPT = sorted(path for path in FOLDERS.glob("folder-v*") if path.is_dir())


@pytest.fixture(params=KEPT, ids=lambda path: path.name)
def kept(request: pytest.FixtureRequest) -> Path:
    assert isinstance(request.param, Path)
    return request.param


def test_kept_folder_opens_and_goes_on(kept: Path, tmp_path: Path) -> None:
    shutil.copytree(kept, tmp_path / "data", copy_function=shutil.copyfile)
    expected = json.loads(kept.with_suffix(".json").read_text())
    producer_id = expected.pop("producer_id")
    with ObservedBroker(tmp_path) as broker:
        with broker.client() as client:
            assert read_content(client) == expected
            # The state of the producer is there: it goes on where it was, and a repeated batch is known as such.
            for partition in range(PARTITIONS):
                response = client.produce(
                    "orders", [b"next"], partition=partition, producer_id=producer_id, base_sequence=RECORDS
                )
                assert (response.error_code, response.base_offset) == (0, RECORDS)
                response = client.produce(
                    "orders", [b"next"], partition=partition, producer_id=producer_id, base_sequence=RECORDS
                )
                assert (response.error_code, response.base_offset) == (0, RECORDS)
            assert client.new_producer_id() > producer_id
            middle = expected["topics"]["orders"]["partitions"][0][20]
            assert client.offset_at("orders", middle[1]) == (0, middle[0]), "the time indexes are found"
            assert client.create_topic("new") == 0
        assert not broker.warnings()
        assert broker.log_lines("clean=True")


def test_kept_folder_opens_after_a_kill(kept: Path, tmp_path: Path) -> None:
    """Without the mark of a clean stop every batch of the last segments is checked, and nothing is found wrong."""
    shutil.copytree(kept, tmp_path / "data", copy_function=shutil.copyfile)
    (tmp_path / "data" / ".kafka_cleanshutdown").unlink()
    (tmp_path / "data" / "recovery-point-offset-checkpoint").unlink()
    expected = json.loads(kept.with_suffix(".json").read_text())
    del expected["producer_id"]
    with ObservedBroker(tmp_path) as broker, broker.client() as client:
        assert read_content(client) == expected
        assert not broker.warnings()


def _newer_meta_properties(data: Path) -> None:
    file = data / "meta.properties"
    file.write_text(file.read_text().replace("version=1", "version=2"))


def _newer_metadata_store(data: Path) -> None:
    connection = sqlite3.connect(data / "metadata.db")
    connection.execute("PRAGMA user_version = 99")
    connection.close()


def _newer_partition_metadata(data: Path) -> None:
    file = data / "orders-0" / "partition.metadata"
    file.write_text(file.read_text().replace("version: 0", "version: 1"))


def _newer_checkpoint(data: Path) -> None:
    file = data / "recovery-point-offset-checkpoint"
    file.write_text("1" + file.read_text()[1:])


@pytest.mark.parametrize(
    "make_newer", [_newer_meta_properties, _newer_metadata_store, _newer_partition_metadata, _newer_checkpoint]
)
def test_newer_folder_is_refused(tmp_path: Path, make_newer: object) -> None:
    assert callable(make_newer)
    data = tmp_path / "data"
    shutil.copytree(KEPT[-1], data, copy_function=shutil.copyfile)
    make_newer(data)
    file = tmp_path / "server.properties"
    file.write_text(f"node.id={NODE_ID}\nlisteners=PLAINTEXT://127.0.0.1:{free_port()}\nlog.dirs={data}\n")
    sentence = refusal(file)
    assert "version" in sentence
    assert str(data) in sentence
    assert (data / ".kafka_cleanshutdown").exists() or make_newer is not _newer_meta_properties
