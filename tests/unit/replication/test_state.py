import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import BrokerId, LeaderEpoch, Offset
from kaspar.replication.state import Leadership, PartitionState, Role

ME = BrokerId(1)
OTHER = BrokerId(2)
THIRD = BrokerId(3)


def leadership(
    *, leader: BrokerId = ME, epoch: int = 0, partition_epoch: int = 0, in_sync: tuple[BrokerId, ...] = (ME,)
) -> Leadership:
    return Leadership(leader, LeaderEpoch(epoch), partition_epoch, (ME, OTHER, THIRD), in_sync)


def leading(*in_sync: BrokerId, end: int = 0) -> PartitionState:
    state = PartitionState(ME)
    state.decide_role(leadership(in_sync=in_sync), durable_end=Offset(end))
    return state


def test_alone_in_sync_the_leader_commits_what_is_durable() -> None:
    state = leading(ME)
    assert state.local_end_moved(Offset(7))
    assert state.high_watermark == 7


def test_high_watermark_is_the_smallest_end_among_the_in_sync_replicas() -> None:
    state = leading(ME, OTHER, THIRD)
    assert not state.local_end_moved(Offset(10))
    assert not state.follower_fetched(OTHER, Offset(8))
    assert state.follower_fetched(THIRD, Offset(5))
    assert state.high_watermark == 5
    assert state.follower_fetched(THIRD, Offset(9))
    assert state.high_watermark == 8


def test_a_replica_out_of_sync_holds_nothing_back() -> None:
    state = leading(ME, OTHER)
    state.local_end_moved(Offset(10))
    assert not state.follower_fetched(THIRD, Offset(1))
    assert state.follower_fetched(OTHER, Offset(10))
    assert state.high_watermark == 10


def test_high_watermark_never_goes_back_under_one_leader() -> None:
    state = leading(ME, OTHER)
    state.local_end_moved(Offset(10))
    state.follower_fetched(OTHER, Offset(10))
    assert not state.follower_fetched(OTHER, Offset(3))
    assert state.high_watermark == 10


def test_an_older_epoch_never_replaces_a_newer_one() -> None:
    state = PartitionState(ME)
    assert state.decide_role(leadership(leader=OTHER, epoch=5), durable_end=Offset(0))
    assert not state.decide_role(leadership(leader=ME, epoch=4, partition_epoch=9), durable_end=Offset(0))
    assert state.role is Role.FOLLOWER
    assert state.leadership.leader_epoch == 5


def test_a_new_partition_epoch_changes_the_in_sync_replicas_but_not_the_leader_epoch() -> None:
    state = leading(ME, OTHER)
    state.local_end_moved(Offset(4))
    assert not state.decide_role(leadership(partition_epoch=1, in_sync=(ME,)), durable_end=Offset(4))
    assert state.high_watermark == 4


def test_a_new_leader_forgets_what_followers_of_an_older_epoch_had() -> None:
    state = leading(ME, OTHER)
    state.local_end_moved(Offset(4))
    state.follower_fetched(OTHER, Offset(4))
    state.decide_role(leadership(epoch=1, in_sync=(ME, OTHER)), durable_end=Offset(9))
    assert state.high_watermark == 4
    assert not state.follower_ends


def test_truncation_takes_the_high_watermark_along() -> None:
    state = leading(ME)
    state.local_end_moved(Offset(9))
    state.truncated(Offset(6))
    assert state.high_watermark == 6


@pytest.mark.parametrize(
    ("requested", "code"),
    [(-2, ErrorCode.FENCED_LEADER_EPOCH), (2, ErrorCode.FENCED_LEADER_EPOCH), (4, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_a_leader_epoch_that_differs_is_refused(requested: int, code: ErrorCode) -> None:
    state = PartitionState(ME)
    state.decide_role(leadership(epoch=3), durable_end=Offset(0))
    state.check_epoch(3)
    state.check_epoch(-1)
    with pytest.raises(Refused) as refusal:
        state.check_epoch(requested)
    assert refusal.value.code == code


def test_only_a_follower_may_fetch_in_a_replicas_name() -> None:
    state = leading(ME, OTHER)
    state.check_follower(OTHER, knows_epoch=True)
    for stranger in (ME, 9):
        with pytest.raises(Refused) as refusal:
            state.check_follower(stranger, knows_epoch=False)
        assert refusal.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        with pytest.raises(Refused) as refusal:
            state.check_follower(stranger, knows_epoch=True)
        assert refusal.value.code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_too_few_in_sync_replicas_refuse_an_append_that_wants_all() -> None:
    state = leading(ME)
    state.check_in_sync(1)
    with pytest.raises(Refused) as refusal:
        state.check_in_sync(2)
    assert refusal.value.code == ErrorCode.NOT_ENOUGH_REPLICAS
