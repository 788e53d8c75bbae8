"""The rules of a partition's state: leadership, the high watermark, and checks of requests."""

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import BrokerId, Offset
from kaspar.replication.state import Leadership, PartitionState, Role
from tests.unit.replication.states import ME, OTHER, THIRD, Cluster, decide, fetched, leadership, leading


def test_alone_in_sync_the_leader_commits_what_is_durable() -> None:
    state = leading(ME)
    assert state.local_end_moved(Offset(7))
    assert state.high_watermark == 7


def test_the_only_replica_commits_alone_and_one_of_several_does_not() -> None:
    alone = PartitionState(ME)
    decide(alone, Leadership(ME, leadership().leader_epoch, 0, (ME,), (ME,)))
    assert alone.commits_alone
    assert alone.local_end_moved(Offset(3))
    assert not alone.local_end_moved(Offset(3))
    assert not leading(ME).commits_alone


def test_high_watermark_is_the_smallest_end_among_the_in_sync_replicas() -> None:
    state = leading(ME, OTHER, THIRD)
    assert not state.local_end_moved(Offset(10))
    assert not fetched(state, OTHER, 8)
    assert fetched(state, THIRD, 5)
    assert state.high_watermark == 5
    assert fetched(state, THIRD, 9)
    assert state.high_watermark == 8


def test_a_replica_out_of_sync_holds_nothing_back() -> None:
    state = leading(ME, OTHER)
    state.local_end_moved(Offset(10))
    assert not fetched(state, THIRD, 1)
    assert fetched(state, OTHER, 10)
    assert state.high_watermark == 10


def test_high_watermark_never_goes_back_under_one_leader() -> None:
    state = leading(ME, OTHER)
    state.local_end_moved(Offset(10))
    fetched(state, OTHER, 10)
    assert not fetched(state, OTHER, 3)
    assert state.high_watermark == 10


def test_kip_966_high_watermark_stands_still_below_min_insync_replicas() -> None:
    cluster = Cluster()
    state = leading(ME, OTHER, cluster=cluster)
    state.min_insync_replicas = 2
    state.local_end_moved(Offset(4))
    fetched(state, OTHER, 4)
    assert state.high_watermark == 4
    del cluster.epochs[OTHER]
    decide(state, leadership(partition_epoch=1, in_sync=(ME,)), end=4)
    assert not state.local_end_moved(Offset(9))
    assert state.high_watermark == 4
    state.min_insync_replicas = 1
    assert state.recheck()
    assert state.high_watermark == 9


def test_a_partition_with_fewer_replicas_than_min_insync_replicas_needs_all_of_them() -> None:
    state = leading(ME, OTHER, THIRD)
    state.min_insync_replicas = 5
    state.local_end_moved(Offset(4))
    fetched(state, OTHER, 4)
    assert fetched(state, THIRD, 4)


def test_an_older_epoch_never_replaces_a_newer_one() -> None:
    state = PartitionState(ME)
    assert decide(state, leadership(leader=OTHER, epoch=5))
    assert not decide(state, leadership(leader=ME, epoch=4, partition_epoch=9))
    assert state.role is Role.FOLLOWER
    assert state.leadership.leader_epoch == 5


def test_a_new_partition_epoch_changes_the_in_sync_replicas_but_not_the_leader_epoch() -> None:
    cluster = Cluster()
    state = leading(ME, OTHER, cluster=cluster)
    state.local_end_moved(Offset(4))
    del cluster.epochs[OTHER]
    assert not decide(state, leadership(partition_epoch=1, in_sync=(ME,)), end=4)
    assert state.high_watermark == 4


def test_a_new_leader_epoch_forgets_what_followers_had() -> None:
    state = leading(ME, OTHER)
    state.local_end_moved(Offset(4))
    fetched(state, OTHER, 4)
    decide(state, leadership(epoch=1, in_sync=(ME, OTHER)), end=9)
    assert state.high_watermark == 4
    assert state.followers[OTHER].log_end_offset == -1


def test_a_restarted_leader_with_followers_begins_with_the_high_watermark_it_knew() -> None:
    state = PartitionState(ME, Cluster(), Offset(3))
    decide(state, leadership(in_sync=(ME, OTHER)), end=9)
    assert state.high_watermark == 3
    assert state.is_high_watermark_behind
    fetched(state, OTHER, 9, leader_end=9)
    assert state.high_watermark == 9
    assert not state.is_high_watermark_behind


def test_who_resigned_can_lead_again_in_the_same_epoch_but_not_in_an_older_one() -> None:
    state = leading(ME, epoch=4)
    state.resign()
    with pytest.raises(Refused):
        state.check_leader()
    assert not decide(state, leadership(epoch=3, partition_epoch=7))
    assert decide(state, leadership(epoch=4))
    assert state.role is Role.LEADER


def test_truncation_takes_the_high_watermark_along() -> None:
    state = leading(ME)
    state.local_end_moved(Offset(9))
    state.truncated(Offset(6))
    assert state.high_watermark == 6


def test_a_log_that_starts_anew_has_everything_before_committed() -> None:
    state = PartitionState(ME, Cluster(), Offset(9))
    decide(state, leadership(leader=OTHER))
    state.truncated(Offset(20), Offset(20))
    assert state.high_watermark == 20


def test_a_follower_follows_the_leaders_high_watermark_as_far_as_its_own_log_goes() -> None:
    state = PartitionState(ME)
    decide(state, leadership(leader=OTHER))
    assert state.follow_high_watermark(Offset(8), Offset(5))
    assert state.high_watermark == 5
    assert not state.follow_high_watermark(Offset(3), Offset(5)), "what was committed stays committed"
    assert state.high_watermark == 5


@pytest.mark.parametrize(
    ("requested", "code"),
    [(-2, ErrorCode.FENCED_LEADER_EPOCH), (2, ErrorCode.FENCED_LEADER_EPOCH), (4, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_kip_320_a_leader_epoch_that_differs_is_refused(requested: int, code: ErrorCode) -> None:
    state = leading(ME, epoch=3)
    state.check_epoch(3)
    state.check_epoch(-1)
    with pytest.raises(Refused) as refusal:
        state.check_epoch(requested)
    assert refusal.value.code == code


def test_only_a_follower_may_fetch_in_a_replicas_name() -> None:
    state = leading(ME, OTHER)
    state.check_follower(OTHER, knows_epoch=True)
    for stranger in (ME, BrokerId(9)):
        with pytest.raises(Refused) as refusal:
            state.check_follower(stranger, knows_epoch=False)
        assert refusal.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        with pytest.raises(Refused) as refusal:
            state.check_follower(stranger, knows_epoch=True)
        assert refusal.value.code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_too_few_in_sync_replicas_refuse_an_append_that_wants_all() -> None:
    state = leading(ME)
    state.check_in_sync()
    state.min_insync_replicas = 2
    with pytest.raises(Refused) as refusal:
        state.check_in_sync()
    assert refusal.value.code == ErrorCode.NOT_ENOUGH_REPLICAS
    with pytest.raises(Refused) as refusal:
        state.check_in_sync_after_append()
    assert refusal.value.code == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


def test_a_read_of_consumers_needs_a_replica_and_one_of_producers_the_leader() -> None:
    state = PartitionState(ME)
    decide(state, leadership(leader=OTHER))
    state.check_replica()
    with pytest.raises(Refused):
        state.check_leader()
    state.resign()
    with pytest.raises(Refused) as refusal:
        state.check_replica()
    assert refusal.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
