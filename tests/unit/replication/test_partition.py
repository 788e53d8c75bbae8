"""A partition over a real log: what is committed when, and who is notified."""

from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import Offset
from kaspar.records import ControlType, EndTransactionMarker
from kaspar.replication.partition import Partition
from kaspar.replication.state import Role
from kaspar.storage import Appended
from tests.unit.replication.partitions import ME, OTHER, Reader, append, leadership, make_partition
from tests.unit.storage.logs import NOW_MS, append_transactional, end_transaction, log_config, make_batch


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


def test_readers_are_notified_of_how_many_bytes_were_added(partition: Partition) -> None:
    reader = Reader()
    partition.fetch_waiters.add(reader)
    batch = make_batch([b"x" * 100])
    append(partition, batch)
    append(partition, batch)
    assert reader.notified == [len(batch), len(batch)]


def test_readers_are_not_notified_of_a_duplicate(partition: Partition) -> None:
    first = append(partition, make_batch(producer_id=5, producer_epoch=0, base_sequence=0))
    reader = Reader()
    partition.fetch_waiters.add(reader)
    again = append(partition, make_batch(producer_id=5, producer_epoch=0, base_sequence=0))
    assert again.duplicate
    assert again.base_offset == first.base_offset
    assert reader.notified == []


def test_a_waiter_that_appends_at_once_does_not_wake_readers_for_nothing(group_commit: Partition) -> None:
    """A produce that has its response frees its connection, whose next request may be handled within the same call."""
    reader = Reader()
    group_commit.fetch_waiters.add(reader)
    batch = make_batch()

    def append_another() -> None:
        append(group_commit, batch)
        sync(group_commit)

    append(group_commit, make_batch())
    group_commit.when_committed(Offset(1), append_another)
    sync(group_commit)
    assert reader.notified == [len(batch), len(batch)]


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
def test_waiters_are_notified_when_the_partition_is_no_longer_led_here(group_commit: Partition, end: str) -> None:
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
    assert reader.notified == [0]
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
    before = len(reader.notified)
    sync(group_commit)
    assert (group_commit.high_watermark, group_commit.last_stable_offset) == (2, 2)
    assert len(reader.notified) == before + 1, "its waiters are notified"


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


# -- several replicas --------------------------------------------------------------------------------------------------


def test_followers_are_woken_by_appends_and_consumers_by_commits(partition: Partition) -> None:
    partition.lead_or_follow(leadership(partition_epoch=1, in_sync=(ME, OTHER)))
    consumer, follower = Reader(), Reader()
    partition.fetch_waiters.add(consumer)
    partition.replica_waiters.add(follower)
    batch = make_batch()
    append(partition, batch)
    assert (consumer.notified, follower.notified) == ([], [len(batch)])
    partition.follower_fetched(OTHER, -1, 1, 0)
    assert (consumer.notified, follower.notified) == ([len(batch)], [len(batch)])


def test_what_a_follower_has_commits_and_calls_who_waits(partition: Partition) -> None:
    partition.lead_or_follow(leadership(partition_epoch=1, in_sync=(ME, OTHER)))
    called: list[int] = []
    append(partition, acks_all=True)
    partition.when_committed(Offset(1), lambda: called.append(1))
    partition.follower_fetched(OTHER, -1, 0, 0)
    assert called == []
    partition.follower_fetched(OTHER, -1, 1, 0)
    assert (called, partition.high_watermark) == ([1], 1)


def test_an_offset_outside_the_log_says_nothing_about_a_follower(partition: Partition) -> None:
    partition.lead_or_follow(leadership(partition_epoch=1, in_sync=(ME, OTHER)))
    append(partition)
    for offset in (-1, 2):
        with pytest.raises(Refused) as refusal:
            partition.follower_fetched(OTHER, -1, offset, 0)
        assert refusal.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert partition.state.followers[OTHER].log_end_offset == -1


def test_a_follower_has_the_leaders_bytes_and_follows_its_high_watermark(tmp_path: Path) -> None:
    leader, follower = make_partition(tmp_path / "1"), make_partition(tmp_path / "2")
    leader.lead_or_follow(leadership())
    follower.lead_or_follow(leadership(leader=OTHER, in_sync=(OTHER,)))
    reader = Reader()
    follower.fetch_waiters.add(reader)
    append(leader, make_batch([b"a"]))
    append(leader, make_batch([b"b"]))
    data = leader.log.read(0, 1 << 20, 2)
    follower.append_as_follower(follower.log.check_fetched(data, leader_epoch=0), now_ms=NOW_MS)
    assert (follower.log.read(0, 1 << 20, 2), reader.notified) == (data, [])
    follower.follow_leader(2, 1)
    assert (follower.high_watermark, follower.log.log_start_offset) == (2, 1)
    assert reader.notified == [len(data)]
    follower.append_as_follower(follower.log.check_fetched(b"", leader_epoch=0), now_ms=NOW_MS)


def test_a_follower_does_not_delete_what_it_does_not_know_to_be_committed(tmp_path: Path) -> None:
    follower = make_partition(tmp_path)
    follower.lead_or_follow(leadership(leader=OTHER, in_sync=(OTHER,)))
    data = bytes(make_batch([b"a", b"b"]))
    follower.append_as_follower(follower.log.check_fetched(data, leader_epoch=0), now_ms=NOW_MS)
    follower.follow_leader(1, 2)
    assert follower.log.log_start_offset == 1


def test_a_new_partition_begins_with_the_high_watermark_that_was_known(tmp_path: Path) -> None:
    first = make_partition(tmp_path)
    first.lead_or_follow(leadership())
    for _ in range(3):
        append(first)
    for known, expected in ((2, 2), (9, 3), (0, 0)):
        again = Partition(first.topic_partition, first.topic_id, first.log, ME, high_watermark=known)
        assert again.high_watermark == expected


def test_a_transaction_whose_marker_was_committed_before_the_start_holds_nothing_back(tmp_path: Path) -> None:
    first = make_partition(tmp_path)
    first.lead_or_follow(leadership(in_sync=(ME, OTHER)))
    append_transactional(first.log, 7, 0)
    end_transaction(first.log, 7, committed=True)
    for known, stable in ((1, 0), (2, 2)):
        again = Partition(first.topic_partition, first.topic_id, first.log, ME, high_watermark=known)
        assert again.last_stable_offset == stable


def test_an_offline_partition_leads_nothing_whatever_the_image_says(partition: Partition) -> None:
    partition.log.directory.take_offline("the disk is gone")
    partition.retire()
    partition.lead_or_follow(leadership(epoch=9))
    assert partition.state.role is Role.NONE
