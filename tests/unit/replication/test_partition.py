"""A partition over a real log: what is committed when, and who is told of it."""

from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import Offset
from kaspar.records import ControlType, EndTransactionMarker
from kaspar.replication.partition import Partition
from kaspar.replication.state import Role
from kaspar.storage import Appended
from tests.unit.replication.partitions import ME, OTHER, Reader, append, leadership, make_partition
from tests.unit.storage.logs import NOW_MS, append_transactional, log_config, make_batch


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    leading = make_partition(tmp_path)
    leading.lead_or_follow(leadership())
    return leading


@pytest.fixture
def group_commit(tmp_path: Path) -> Partition:
    """A partition that commits only what is synced."""
    leading = make_partition(tmp_path, log_config(flush_messages=1))
    leading.lead_or_follow(leadership())
    return leading


def sync(partition: Partition) -> None:
    partition.durable_up_to(partition.log.flush())


def test_alone_in_sync_an_append_is_committed_at_once(partition: Partition) -> None:
    append(partition)
    assert partition.high_watermark == 1


def test_group_commit_commits_what_a_sync_covered(group_commit: Partition) -> None:
    append(group_commit)
    assert group_commit.high_watermark == 0
    sync(group_commit)
    assert group_commit.high_watermark == 1


def test_a_waiter_is_called_once_when_its_offset_is_committed(group_commit: Partition) -> None:
    called: list[int] = []
    append(group_commit)
    group_commit.when_committed(Offset(1), lambda: called.append(1))
    sync(group_commit)
    append(group_commit)
    group_commit.when_committed(Offset(2), lambda: called.append(2))
    assert called == [1]
    sync(group_commit)
    assert called == [1, 2]


def test_readers_are_told_how_many_bytes_more_there_are(partition: Partition) -> None:
    reader = Reader()
    partition.fetch_waiters.add(reader)
    batch = make_batch([b"x" * 100])
    append(partition, batch)
    append(partition, batch)
    assert reader.told == [len(batch), len(batch)]


def test_a_duplicate_is_not_told_of(partition: Partition) -> None:
    first = append(partition, make_batch(producer_id=5, producer_epoch=0, base_sequence=0))
    reader = Reader()
    partition.fetch_waiters.add(reader)
    again = append(partition, make_batch(producer_id=5, producer_epoch=0, base_sequence=0))
    assert again.duplicate
    assert again.base_offset == first.base_offset
    assert reader.told == []


def test_a_waiter_that_appends_at_once_does_not_wake_readers_for_nothing(group_commit: Partition) -> None:
    """A produce that is answered frees its connection, whose next request may be handled within the same call."""
    reader = Reader()
    group_commit.fetch_waiters.add(reader)
    batch = make_batch()

    def append_another() -> None:
        append(group_commit, batch)
        sync(group_commit)

    append(group_commit, make_batch())
    group_commit.when_committed(Offset(1), append_another)
    sync(group_commit)
    assert reader.told == [len(batch), len(batch)]


def test_fewer_replicas_in_sync_commit_what_waited_for_the_others(partition: Partition) -> None:
    partition.lead_or_follow(leadership(partition_epoch=1, in_sync=(ME, OTHER)))
    called: list[int] = []
    append(partition)
    partition.when_committed(Offset(1), lambda: called.append(1))
    assert partition.high_watermark == 0
    partition.lead_or_follow(leadership(partition_epoch=2, in_sync=(ME,)))
    assert partition.high_watermark == 1
    assert called == [1]


def test_a_sync_that_ends_after_the_leadership_commits_nothing(group_commit: Partition) -> None:
    append(group_commit)
    synced = group_commit.log.flush()
    group_commit.lead_or_follow(leadership(leader=OTHER, epoch=1, in_sync=(OTHER,)))
    group_commit.durable_up_to(synced)
    assert group_commit.high_watermark == 0


@pytest.mark.parametrize("end", ["retired", "led by another"])
def test_who_waits_is_told_when_the_partition_is_no_longer_led_here(group_commit: Partition, end: str) -> None:
    called: list[int] = []
    reader = Reader()
    group_commit.fetch_waiters.add(reader)
    append(group_commit)
    group_commit.when_committed(Offset(1), lambda: called.append(1))
    if end == "retired":
        group_commit.retire()
    else:
        group_commit.lead_or_follow(leadership(leader=OTHER, epoch=1, in_sync=(OTHER,)))
    assert called == [1]
    assert reader.told == [0]
    with pytest.raises(Refused) as refusal:
        append(group_commit)
    assert refusal.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_waiters_are_called_once_even_if_one_of_them_ends_the_leadership(group_commit: Partition) -> None:
    called: list[int] = []

    def first() -> None:
        called.append(1)
        group_commit.retire()

    append(group_commit)
    append(group_commit)
    group_commit.when_committed(Offset(1), first)
    group_commit.when_committed(Offset(2), lambda: called.append(2))
    sync(group_commit)
    assert called == [1, 2]


def test_a_failed_directory_is_why_it_is_not_led(partition: Partition) -> None:
    partition.log.directory.take_offline("the disk is gone")
    partition.retire()
    assert partition.state.role is Role.NONE
    with pytest.raises(Refused) as refusal:
        append(partition)
    assert refusal.value.code == ErrorCode.KAFKA_STORAGE_ERROR


def test_too_few_replicas_in_sync_refuse_acks_all_only(tmp_path: Path) -> None:
    partition = make_partition(tmp_path, log_config(min_insync_replicas=2))
    partition.lead_or_follow(leadership())
    append(partition)
    with pytest.raises(Refused) as refusal:
        append(partition, acks_all=True)
    assert refusal.value.code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert partition.log.log_end_offset == 1


def abort(partition: Partition, producer_id: int = 7) -> Appended:
    return partition.append_marker(
        EndTransactionMarker(ControlType.ABORT, 0),
        producer_id=producer_id,
        producer_epoch=0,
        transaction_version=0,
        now_ms=NOW_MS,
    )


def test_a_marker_moves_the_last_stable_offset_when_it_is_committed(group_commit: Partition) -> None:
    reader = Reader()
    group_commit.fetch_waiters.add(reader)
    append_transactional(group_commit.log, 7, 0)
    sync(group_commit)
    abort(group_commit)
    assert (group_commit.high_watermark, group_commit.last_stable_offset) == (1, 0)
    before = len(reader.told)
    sync(group_commit)
    assert (group_commit.high_watermark, group_commit.last_stable_offset) == (2, 2)
    assert len(reader.told) == before + 1, "whoever waits for it hears of it"


def test_a_marker_is_committed_by_all_replicas_in_sync(partition: Partition) -> None:
    append_transactional(partition.log, 7, 0)
    partition.lead_or_follow(leadership(partition_epoch=1, in_sync=(ME, OTHER)))
    abort(partition)
    assert partition.last_stable_offset == 0
    partition.lead_or_follow(leadership(partition_epoch=2))
    assert partition.last_stable_offset == 2


def test_a_marker_is_taken_where_an_append_with_acks_all_would_be(tmp_path: Path) -> None:
    lonely = make_partition(tmp_path, log_config(min_insync_replicas=2))
    for leader, code in ((ME, ErrorCode.NOT_ENOUGH_REPLICAS), (OTHER, ErrorCode.NOT_LEADER_OR_FOLLOWER)):
        lonely.lead_or_follow(leadership(leader=leader, epoch=int(leader)))
        with pytest.raises(Refused) as refused:
            abort(lonely)
        assert refused.value.code is code


def test_open_transactions_hold_readers_back_after_a_change_of_leaders_too(partition: Partition) -> None:
    append_transactional(partition.log, 7, 0)
    append_transactional(partition.log, 8, 0)
    partition.lead_or_follow(leadership(epoch=1))
    assert (partition.high_watermark, partition.last_stable_offset) == (2, 0)
    abort(partition, 7)
    assert (partition.high_watermark, partition.last_stable_offset) == (3, 1)
