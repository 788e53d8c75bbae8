"""Which batches of Kafka's metadata log count: those of the latest snapshot, and everything behind it."""

from pathlib import Path

import pytest

from kaspar.metadata.kraft.metadata_log import DamagedMetadataLog
from kaspar.metadata.kraft.state import KRaftState
from tests.unit.metadata.kraft.kafka_folders import Node, batch, footer, leader_change, level, usual


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path).write(usual())


def read(node: Node) -> tuple[KRaftState, int, int]:
    """The state, the end offset, and how many bytes at the end were left out."""
    state, log = KRaftState(), node.log()
    for each in log.read():
        state.replay(each)
    return state, log.end_offset, log.unfinished_bytes


def features(node: Node) -> dict[str, int]:
    return read(node)[0].features


def test_a_log_without_a_snapshot_is_read_from_its_start(node: Node) -> None:
    state, end_offset, unfinished = read(node)
    assert end_offset == 1 + len(usual())
    assert not unfinished
    assert state.voters == {1}
    assert [topic.name for topic in state.topics.values()] == ["orders"]


def test_several_segments_are_one_log(node: Node) -> None:
    end = 1 + len(usual())
    node.segment(end, batch(end, level("group.version", 1)))
    node.segment(end + 1, batch(end + 1, level("transaction.version", 2)))
    assert features(node) == {"metadata.version": 30, "group.version": 1, "transaction.version": 2}


def test_what_a_snapshot_contains_is_not_read_again(node: Node) -> None:
    end = 1 + len(usual())
    node.segment(end, batch(end, level("group.version", 1)), batch(end + 1, level("transaction.version", 2)))
    node.snapshot(3, batch(0, level(number=7)), footer(1))
    node.snapshot(end + 1, batch(0, level(number=29), level("group.version", 0)), footer(1))
    assert features(node) == {"metadata.version": 29, "transaction.version": 2}


def test_segments_before_the_snapshot_may_be_gone(node: Node) -> None:
    (node.metadata_log / f"{0:020d}.log").unlink()
    node.segment(50, leader_change(50))
    node.snapshot(50, batch(0, *usual()), footer(5))
    assert features(node) == {"metadata.version": 30}


def test_files_of_other_kinds_are_passed_over(node: Node) -> None:
    for name in (
        "leader-epoch-checkpoint",
        f"{9:020d}-0000000001.checkpoint.part",
        f"{0:020d}.index",
        "bootstrap.checkpoint",
    ):
        (node.metadata_log / name).write_bytes(b"something")
    assert features(node) == {"metadata.version": 30}


@pytest.mark.parametrize("left", [1, 40, 61, 80])
def test_a_write_that_was_cut_off_does_not_count(node: Node, left: int) -> None:
    path = node.metadata_log / f"{0:020d}.log"
    end = 1 + len(usual())
    path.write_bytes(path.read_bytes() + batch(end, level("group.version", 1))[:left])
    state, end_offset, unfinished = read(node)
    assert (end_offset, unfinished) == (end, left)
    assert "group.version" not in state.features


def test_neither_does_a_last_batch_that_is_not_all_there_or_zeros(node: Node) -> None:
    path, end = node.metadata_log / f"{0:020d}.log", 1 + len(usual())
    good, last = path.read_bytes(), batch(end, level("group.version", 1))
    for tail in (last[:-3] + b"\0\0\0", bytes(100)):
        path.write_bytes(good + tail)
        state, end_offset, unfinished = read(node)
        assert (end_offset, unfinished) == (end, len(tail))
        assert "group.version" not in state.features


def test_damage_before_the_end_is_an_error(node: Node) -> None:
    path = node.metadata_log / f"{0:020d}.log"
    good = bytearray(path.read_bytes())
    good[30] ^= 1
    path.write_bytes(good)
    with pytest.raises(DamagedMetadataLog, match="no valid batch at position 0"):
        read(node)


def test_damage_at_the_end_of_an_earlier_segment_is_an_error(node: Node) -> None:
    path, end = node.metadata_log / f"{0:020d}.log", 1 + len(usual())
    path.write_bytes(path.read_bytes()[:-1])
    node.segment(end, leader_change(end))
    with pytest.raises(DamagedMetadataLog, match="no valid batch"):
        read(node)


def test_missing_records_are_an_error(node: Node) -> None:
    end = 1 + len(usual())
    path = node.segment(end + 2, leader_change(end + 2))
    with pytest.raises(DamagedMetadataLog, match=f"offset {end} is followed by {end + 2}"):
        read(node)
    (node.metadata_log / f"{0:020d}.log").unlink()
    with pytest.raises(DamagedMetadataLog, match="records from offset 0 on are missing"):
        read(node)
    path.unlink()
    assert node.log().is_empty


def test_a_snapshot_without_its_footer_is_an_error(node: Node) -> None:
    node.snapshot(2, batch(0, *usual()))
    with pytest.raises(DamagedMetadataLog, match="does not end with its footer"):
        read(node)
