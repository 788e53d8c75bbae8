"""Checkpoints, leader epochs, meta.properties, partition.metadata, names."""

import json
import uuid
from pathlib import Path

import pytest

from kaspar.base.errors import KasparError
from kaspar.base.ids import TopicPartition, uuid_to_text
from kaspar.storage import OsFiles
from kaspar.storage.directories import folder_metadata
from kaspar.storage.directories.folder_metadata import MetaProperties
from kaspar.storage.disk import checkpoints, file_names
from kaspar.storage.disk.checkpoints import DamagedCheckpoint, UnknownVersion
from kaspar.storage.leader_epochs import LeaderEpochCache

FILES = OsFiles()
NAME = file_names.RECOVERY_POINT_CHECKPOINT


def test_an_offset_checkpoint_is_written_as_kafka_does(tmp_path: Path) -> None:
    offsets = {TopicPartition("orders", 0): 1234, TopicPartition("a-b.c", 11): 0}
    checkpoints.write_offsets(FILES, str(tmp_path), NAME, offsets)
    assert (tmp_path / NAME).read_text() == "0\n2\norders 0 1234\na-b.c 11 0\n"
    assert checkpoints.read_offsets(FILES, str(tmp_path), NAME) == offsets
    assert [path.name for path in tmp_path.iterdir()] == [NAME], "no temporary file is left"


def test_a_missing_checkpoint_is_empty(tmp_path: Path) -> None:
    assert checkpoints.read_offsets(FILES, str(tmp_path), NAME) == {}


def test_a_checkpoint_that_kafka_creates_empty_is_not_damaged(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text("")
    assert checkpoints.read_offsets(FILES, str(tmp_path), NAME, may_be_empty=True) == {}
    (tmp_path / NAME).write_text("0")
    with pytest.raises(DamagedCheckpoint):
        checkpoints.read_offsets(FILES, str(tmp_path), NAME, may_be_empty=True)


@pytest.mark.parametrize("text", ["", "0", "0\n1\n", "0\n1\norders 0\n", "0\nx\n", "0\n1\norders zero 5\n", "\0\0\0"])
def test_a_damaged_checkpoint_is_recognised(tmp_path: Path, text: str) -> None:
    (tmp_path / NAME).write_text(text)
    with pytest.raises(DamagedCheckpoint):
        checkpoints.read_offsets(FILES, str(tmp_path), NAME)


def test_a_newer_checkpoint_is_refused(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text("1\n0\n")
    with pytest.raises(UnknownVersion, match="version 1"):
        checkpoints.read_offsets(FILES, str(tmp_path), NAME)


def test_meta_properties_say_whose_a_directory_is(tmp_path: Path) -> None:
    meta = MetaProperties("mqzXZFVKTC-6wGx2LSRLzg", 7, uuid.uuid4())
    folder_metadata.write_meta_properties(FILES, str(tmp_path), meta)
    lines = (tmp_path / "meta.properties").read_text().splitlines()
    assert {"version=1", "node.id=7", "cluster.id=mqzXZFVKTC-6wGx2LSRLzg"} <= set(lines)
    assert folder_metadata.read_meta_properties(FILES, str(tmp_path)) == meta


def test_meta_properties_that_kafka_wrote_are_read(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text(
        "#\n#Sat Nov 14 10:00:00 UTC 2026\nnode.id=1\nversion=1\n"
        "directory.id=k1Nv9Vy0ZbqJxGd1XyYzAw\ncluster.id=abc\\=\n"
    )
    meta = folder_metadata.read_meta_properties(FILES, str(tmp_path))
    assert meta is not None
    assert (meta.node_id, meta.cluster_id) == (1, "abc=")


@pytest.mark.parametrize(
    ("text", "error"),
    [("version=2\nnode.id=1\ncluster.id=x\n", UnknownVersion), ("version=1\nnode.id=1\n", KasparError)],
)
def test_meta_properties_that_cannot_be_trusted_are_refused(
    tmp_path: Path, text: str, error: type[KasparError]
) -> None:
    (tmp_path / "meta.properties").write_text(text)
    with pytest.raises(error):
        folder_metadata.read_meta_properties(FILES, str(tmp_path))


def test_partition_metadata_holds_the_topic_id(tmp_path: Path) -> None:
    topic_id = uuid.uuid4()
    folder_metadata.write_partition_metadata(FILES, str(tmp_path), topic_id)
    assert (tmp_path / "partition.metadata").read_text() == f"version: 0\ntopic_id: {uuid_to_text(topic_id)}"
    assert folder_metadata.read_partition_metadata(FILES, str(tmp_path)) == topic_id
    (tmp_path / "partition.metadata").write_text("version: 1\ntopic_id: x\n")
    with pytest.raises(UnknownVersion):
        folder_metadata.read_partition_metadata(FILES, str(tmp_path))
    (tmp_path / "partition.metadata").write_text("")
    with pytest.raises(DamagedCheckpoint):
        folder_metadata.read_partition_metadata(FILES, str(tmp_path))


def test_the_mark_of_a_clean_stop_counts_once(tmp_path: Path) -> None:
    assert not folder_metadata.take_clean_shutdown(FILES, str(tmp_path))
    folder_metadata.write_clean_shutdown(FILES, str(tmp_path), 42)
    assert json.loads((tmp_path / ".kafka_cleanshutdown").read_text()) == {"version": 0, "brokerEpoch": 42}
    assert folder_metadata.take_clean_shutdown(FILES, str(tmp_path))
    assert not folder_metadata.take_clean_shutdown(FILES, str(tmp_path))


@pytest.mark.parametrize(
    ("folder", "partition"),
    [
        ("orders-0", TopicPartition("orders", 0)),
        ("a-1-22", TopicPartition("a-1", 22)),
        ("orders", None),
        ("orders-01", None),
        ("-0", None),
        ("orders-0.0123456789abcdef0123456789abcdef-delete", None),
        ("recovery-point-offset-checkpoint", None),
    ],
)
def test_a_folder_is_a_partitions_by_its_name(folder: str, partition: TopicPartition | None) -> None:
    assert file_names.parse_partition(folder) == partition


def test_a_folder_to_delete_is_recognised_and_never_too_long() -> None:
    name = file_names.folder_to_delete(TopicPartition("t" * 249, 12))
    assert len(name) <= 255
    assert file_names.parse_mark(name) == "delete"
    assert file_names.parse_partition(name) is None


def test_leader_epochs_know_where_an_epoch_ends(tmp_path: Path) -> None:
    cache = LeaderEpochCache()
    for epoch, start in ((2, 0), (2, 5), (4, 10), (7, 20)):
        cache.assign(epoch, start)
    assert cache.end_offset_for(7, 30) == (7, 30)
    assert cache.end_offset_for(4, 30) == (4, 20)
    assert cache.end_offset_for(5, 30) == (4, 20)
    assert cache.end_offset_for(3, 30) == (2, 10)
    assert cache.end_offset_for(1, 30) == (1, 0), "older than all that is known: it ended where the log begins"
    assert cache.end_offset_for(8, 30) is None
    assert cache.end_offset_for(-1, 30) is None
    assert cache.end_offset_for(-2, 30) == (-2, 0), "only -1 says that no epoch is known"
    assert [cache.epoch_for_offset(offset) for offset in (0, 9, 10, 25)] == [2, 2, 4, 7]
    cache.persist(FILES, str(tmp_path))
    assert (tmp_path / "leader-epoch-checkpoint").read_text() == "0\n3\n2 0\n4 10\n7 20\n"
    assert LeaderEpochCache.load(FILES, str(tmp_path)).entries == cache.entries


def entries(cache: LeaderEpochCache) -> list[tuple[int, int]]:
    return [(entry.epoch, entry.start_offset) for entry in cache.entries]


def test_leader_epochs_follow_truncation() -> None:
    cache = LeaderEpochCache()
    for epoch, start in ((0, 0), (1, 10), (2, 20)):
        cache.assign(epoch, start)
    cache.truncate_from_start(15)
    assert entries(cache) == [(1, 15), (2, 20)]
    cache.truncate_from_start(15)
    cache.truncate_from_end(20)
    assert entries(cache) == [(1, 15)]
    cache.assign(5, 15)
    assert entries(cache) == [(5, 15)], "an epoch without records leaves no entry"
    cache.assign(6, 30)
    cache.assign(7, 12)
    assert entries(cache) == [(7, 12)]


def test_a_damaged_leader_epoch_checkpoint_is_rebuilt(tmp_path: Path) -> None:
    (tmp_path / "leader-epoch-checkpoint").write_text("0\n3\n1 2\n")
    cache = LeaderEpochCache.load(FILES, str(tmp_path))
    assert cache.entries == ()
    cache.persist(FILES, str(tmp_path))
    assert (tmp_path / "leader-epoch-checkpoint").read_text() == "0\n0\n"
